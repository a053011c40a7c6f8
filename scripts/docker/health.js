/** Owns the image's health check: exit 0 while the server inside the container is ready, else 1. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';

const { TRIVEC_PORT: port, TRIVEC_SOCKET: socketPath, TRIVEC_TLS_CERT: certificate } = process.env;
const timeoutMs = 4000;
const place = socketPath ? { socketPath } : { host: '127.0.0.1', port: port || '8000' };
const send = certificate ? httpsRequest : httpRequest;
// Its own certificate names other hosts than this one.
const options = { ...place, path: '/health/ready', agent: false, rejectUnauthorized: false };

const fail = (text) => {
  process.stdout.write(`${text}\n`);
  process.exit(1);
};
const outgoing = send({ ...options, signal: AbortSignal.timeout(timeoutMs) }, (answer) => {
  let text = '';
  answer.setEncoding('utf8');
  answer.on('data', (chunk) => (text += chunk));
  answer.on('error', (error) => fail(String(error)));
  answer.on('end', () => (answer.statusCode === 200 ? process.exit(0) : fail(`${answer.statusCode} ${text}`)));
});
outgoing.on('error', (error) => fail(String(error)));
outgoing.end();
