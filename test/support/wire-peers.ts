/** A proxy, and peers that accept a connection and then do not do what a server or a proxy does. */

import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { listen, type WireServer } from './wire-server.ts';

export const BAD_PEERS = {
  'closes at once': (socket: Socket) => void socket.end(),
  'closes after the request': (socket: Socket) => void socket.once('data', () => socket.end()),
  resets: (socket: Socket) => void socket.once('data', () => socket.resetAndDestroy()),
  'is silent': () => undefined,
  'answers half a header': (socket: Socket) => void socket.once('data', () => socket.end('HTTP/1.1 200 O')),
  'answers garbage': (socket: Socket) => void socket.once('data', () => socket.end('220 mail.example.org ESMTP\r\n')),
} as const;
export type BadPeer = keyof typeof BAD_PEERS;

/** A proxy that writes down what it was asked for, and answers all of it with `status` if that is not 200. */
export async function startProxy(
  asked: string[],
  status: number,
  headers: Record<string, string> = {},
): Promise<WireServer> {
  const lines = Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  const server = createServer((request, response) => {
    asked.push(lineOf(request));
    if (status !== 200) return response.writeHead(status, headers).end();
    const onward = httpRequest(request.url ?? '', { method: request.method, headers: request.headers }, (got) => {
      response.writeHead(got.statusCode ?? 0, got.headers);
      got.pipe(response);
    });
    return request.pipe(onward);
  });
  server.on('connect', (request, socket: Socket) => {
    asked.push(lineOf(request));
    // As real ones do, it leaves the end of the connection to the client.
    if (status !== 200)
      return socket
        .on('end', () => socket.end())
        .resume()
        .write(`HTTP/1.1 ${status} No\r\n${lines}\r\n`);
    const [host, port] = (request.url ?? '').split(':');
    const onward = connect(Number(port), host, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
    onward.on('error', () => socket.destroy());
    return socket.pipe(onward).pipe(socket);
  });
  return await listen(server, 'connection', 'http');
}

const lineOf = ({ method, url, headers }: IncomingMessage) =>
  [method, url, headers['proxy-authorization']].filter((part) => part !== undefined).join(' ');
