// A small shop under the real agent: a page, one that fails, one that asks the shop's own stock.
// Given: the address to report to, the service, the port to serve at.
'use strict';

const [backend, service, port] = process.argv.slice(2);
require('skywalking-backend-js').default.start({
  collectorAddress: backend,
  serviceName: service,
  serviceInstance: `${service}-1`,
});

const http = require('http');

function stock(answer) {
  // Only http.request is traced; http.get is not.
  const call = http.request(`http://127.0.0.1:${port}/stock`, (response) => {
    response.on('data', (text) => answer.write(text));
    response.on('end', () => answer.end());
  });
  call.end();
}

const pages = {
  '/catalogue': (answer) => answer.end('books'),
  '/checkout': (answer) => answer.writeHead(500).end('no money'),
  '/basket': stock,
  '/stock': (answer) => answer.end('plenty'),
};

http
  .createServer((request, answer) => pages[request.url](answer))
  .listen(Number(port), '127.0.0.1', () => console.log('ready'));
