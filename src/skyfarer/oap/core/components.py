"""Components: what library a span was made by, as agents number them (SkyWalking's library).

A client's library tells what it speaks to (`Jedis` is used with Redis), and of the components that
a service was seen with, the one nearest to its own code says most of it (SpringMVC, not TCP).
"""

from __future__ import annotations

UNKNOWN = "Unknown"
PRIORITY = 50


def component_named(component_id: int) -> str:
    """The library's name; `Unknown` for 0 and for a number nobody knows."""
    return _NAMES.get(component_id, UNKNOWN)


def server_named(component_id: int) -> str:
    """What stands at the other end of a client's library; the library's own name where that is
    not known to differ."""
    name = component_named(component_id)
    return _SERVERS.get(name, name)


def priority_of(name: str) -> int | None:
    """The higher, the nearer to the service's own code; None for what is no component's name."""
    return _PRIORITIES.get(name, PRIORITY) if name in _KNOWN else None


# Number and name in turn; a name has no blanks.
_LIBRARY = """
1 Tomcat 2 HttpClient 3 Dubbo 4 H2 5 Mysql 6 ORACLE 7 Redis 8 Motan 9 MongoDB 10 Resin 11 Feign
12 OKHttp 13 SpringRestTemplate 14 SpringMVC 15 Struts2 16 NutzMVC 17 NutzHttp 18 JettyClient
19 JettyServer 20 Memcached 21 ShardingJDBC 22 PostgreSQL 23 GRPC 24 ElasticJob 25 RocketMQ
26 httpasyncclient 27 Kafka 28 ServiceComb 29 Hystrix 30 Jedis 31 SQLite 32 h2-jdbc-driver
33 mysql-connector-java 34 ojdbc 35 Spymemcached 36 Xmemcached 37 postgresql-jdbc-driver
38 rocketMQ-producer 39 rocketMQ-consumer 40 kafka-producer 41 kafka-consumer 42 mongodb-driver
43 SOFARPC 44 ActiveMQ 45 activemq-producer 46 activemq-consumer 47 Elasticsearch
48 transport-client 49 http 50 rpc 51 RabbitMQ 52 rabbitmq-producer 53 rabbitmq-consumer 54 Canal
55 Gson 56 Redisson 57 Lettuce 58 Zookeeper 59 Vertx 60 ShardingSphere 61 spring-cloud-gateway
62 RESTEasy 63 SolrJ 64 Solr 65 SpringAsync 66 JdkHttp 67 spring-webflux 68 Play
69 cassandra-java-driver 70 Cassandra 71 Light4J 72 Pulsar 73 pulsar-producer 74 pulsar-consumer
75 Ehcache 76 SocketIO 77 rest-high-level-client 78 spring-tx 79 Armeria 80 JdkThreading
81 KotlinCoroutine 82 AvroServer 83 AvroClient 84 Undertow 85 Finagle 86 Mariadb 87 mariadb-jdbc
88 quasar 89 InfluxDB 90 influxdb-java 91 brpc-java 92 GraphQL 93 spring-annotation 94 HBase
95 spring-kafka-consumer 96 SpringScheduled 97 quartz-scheduler 98 xxl-job
99 spring-webflux-webclient 100 thrift-server 101 thrift-client 102 AsyncHttpClient 103 dbcp
104 mssql-jdbc-driver 105 Apache-CXF 106 dolphinscheduler 107 JsonRpc 108 seata 109 MyBatis 110 tcp
111 AzureHttpTrigger 112 Neo4j 113 Sentinel 114 GuavaCache 115 AlibabaDruid 116 HikariCP
117 Fastjson 118 Jackson 119 ClickHouse-jdbc-driver 120 ClickHouse 121 Apache-Kylin-jdbc-driver
122 Apache-Kylin 123 GuavaEventBus 124 AWSLambdaTrigger 125 AWSLambdaGatewayAPIHTTP
126 AWSLambdaGatewayAPIREST 127 Apache-ShenYu 128 Hutool 129 https 130 tls 131 Micronaut 132 NATS
133 Impala-jdbc-driver 134 Impala 135 EventMesh 136 eventmesh-producer 137 eventmesh-consumer
138 AWSDynamoDB 139 AWSSNS 140 AWSSQS 141 Micrometer 142 mtls 143 amqp 144 amqp-producer
145 amqp-consumer 146 Jersey 147 Grizzly 148 WebSphere 149 Aerospike 150 Nacos 151 Netty-http
152 c3p0 153 Derby-jdbc-driver 154 Sqlite-jdbc-driver 155 Db2-jdbc-driver 156 Sybase-jdbc-driver
157 OceanBase-jdbc-driver 158 SolonMVC 159 DNS 160 Caffeine 161 ThreadPerTask-executor 162 ztunnel
163 Dmdb-jdbc-driver 164 spring-ai-unknown 165 spring-ai-anthropic 166 spring-ai-aws-bedrock
167 spring-ai-azure-openai 168 spring-ai-cohere 169 spring-ai-deepseek 170 spring-ai-gcp-genai
171 spring-ai-gcp-vertex-ai 172 spring-ai-mistral-ai 173 spring-ai-openai 174 spring-ai-huggingface
175 spring-ai-minimax 176 spring-ai-ollama 177 spring-ai-zhipu-ai 178 spring-ai 179 spring-ldap
180 LDAP 3001 AspNetCore 3002 EntityFrameworkCore 3003 SqlClient 3004 CAP 3005 StackExchange.Redis
3006 SqlServer 3007 Npgsql 3008 MySqlConnector 3009 EntityFrameworkCore.InMemory
3010 EntityFrameworkCore.SqlServer 3011 EntityFrameworkCore.Sqlite
3012 Pomelo.EntityFrameworkCore.MySql 3013 Npgsql.EntityFrameworkCore.PostgreSQL
3014 InMemoryDatabase 3015 AspNet 3016 SmartSql 3017 FreeSql 3018 FreeRedis 4001 HttpServer
4002 Express 4003 Egg 4004 Koa 4005 Axios 4006 Mongoose 5001 ServiceCombMesher
5002 ServiceCombServiceCenter 5003 MOSN 5004 GoHttpServer 5005 GoHttpClient 5006 Gin 5007 Gear
5008 GoMicroClient 5009 GoMicroServer 5010 Kratos 5012 GoMysql 5013 OpenFunction 5014 GoRedis
5015 Echo 5016 Lock 5017 GoMuxServer 5018 Iris 5019 GoFastHttpClient 5020 GoFastHttpServer
5021 Fiber 5022 GoFrame 5023 GoZero 6000 Nginx 6001 Kong 6002 APISIX 7000 Python 7001 Flask
7002 Requests 7003 PyMysql 7004 Django 7005 Tornado 7006 Urllib3 7007 Sanic 7008 AioHttp
7009 Pyramid 7010 Psychopg 7011 Celery 7012 Falcon 7013 MysqlClient 7014 FastAPI 7015 Bottle
7016 AsyncPG 7017 AIORedis 7018 Websockets 7019 HTTPX 8001 PHP 8002 cURL 8003 PDO 8004 Mysqli
8005 Yar 8006 Predis 9000 EnvoyProxy 10000 JavaScript 10001 ajax 10002 WeChat-MiniProgram
10003 AliPay-MiniProgram 11000 Rust 12000 Ruby 12001 Sinatra 13000 GenAI
"""

_WORDS = _LIBRARY.split()
_NAMES = {int(number): name for number, name in zip(_WORDS[::2], _WORDS[1::2], strict=True)}
_KNOWN = frozenset((UNKNOWN, *_NAMES.values()))

# A server, then the libraries of its clients.
_CLIENTS = """
MongoDB mongodb-driver
RocketMQ rocketMQ-producer rocketMQ-consumer
Kafka kafka-producer kafka-consumer
ActiveMQ activemq-producer activemq-consumer
RabbitMQ rabbitmq-producer rabbitmq-consumer
Pulsar pulsar-producer pulsar-consumer
EventMesh eventmesh-producer eventmesh-consumer
amqp amqp-producer amqp-consumer
kafka-consumer spring-kafka-consumer
PostgreSQL postgresql-jdbc-driver Npgsql Npgsql.EntityFrameworkCore.PostgreSQL Psychopg AsyncPG
Mysql mysql-connector-java MySqlConnector Pomelo.EntityFrameworkCore.MySql Mysqli PyMysql GoMysql
Mysql MysqlClient
Redis Jedis FreeRedis StackExchange.Redis Redisson Lettuce Predis AIORedis GoRedis
Memcached Xmemcached Spymemcached
H2 h2-jdbc-driver
SqlServer SqlClient EntityFrameworkCore.SqlServer mssql-jdbc-driver
InMemoryDatabase EntityFrameworkCore.InMemory
SQLite EntityFrameworkCore.Sqlite
Elasticsearch transport-client rest-high-level-client
Solr SolrJ
Cassandra cassandra-java-driver
Mariadb mariadb-jdbc
InfluxDB influxdb-java
ClickHouse ClickHouse-jdbc-driver
Apache-Kylin Apache-Kylin-jdbc-driver
Impala Impala-jdbc-driver
LDAP spring-ldap
GenAI spring-ai-unknown spring-ai-anthropic spring-ai-aws-bedrock spring-ai-azure-openai
GenAI spring-ai-cohere spring-ai-deepseek spring-ai-gcp-genai spring-ai-gcp-vertex-ai
GenAI spring-ai-mistral-ai spring-ai-openai spring-ai-huggingface spring-ai-minimax
GenAI spring-ai-ollama spring-ai-zhipu-ai
"""
_SERVERS = {
    client: server
    for server, *clients in map(str.split, _CLIENTS.strip().splitlines())
    for client in clients
}
_PRIORITIES = {
    UNKNOWN: 0,
    "tcp": 10,
    "ztunnel": 10,
    "tls": 11,
    "mtls": 12,
    "rpc": 20,
    "http": 45,
    "amqp": 45,
    "https": 46,
    "SpringMVC": 60,
    "Struts2": 60,
}
