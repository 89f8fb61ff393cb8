// A small shop under the old agent. Its stock is another process: the agent mixes up two requests
// that are under way in one. It is ready when it has its ids; what is asked before is not traced.
// Given: the address to report to, the service, the port to serve at, the port of the stock.
'use strict';

const [backend, service, port, stockPort] = process.argv.slice(2);
require('skyapm-nodejs').start({ serviceName: service, directServers: backend });

const config = require('skyapm-nodejs/lib/config');
const http = require('http');

function stock(answer) {
  const call = http.request({ hostname: '127.0.0.1', port: stockPort, path: '/stock' }, (response) => {
    response.on('data', (text) => answer.write(text));
    response.on('end', () => answer.end());
  });
  call.end();
}

const pages = {
  '/catalogue': (answer) => answer.end('books'),
  '/checkout': (answer) => {
    answer.writeHead(500);
    answer.end('no money');
  },
  '/basket': stock,
  '/stock': (answer) => answer.end('plenty'),
};

const server = http.createServer((request, answer) => pages[request.url](answer));
server.listen(Number(port), '127.0.0.1');

const registering = setInterval(() => {
  if (config.getServiceId() && config.getInstanceId()) {
    clearInterval(registering);
    console.log('ready');
  }
}, 20);
