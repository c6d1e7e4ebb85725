/** Small servers on 127.0.0.1 for the tests of the wire: they answer exactly what a test writes. */
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface WireServer {
  readonly port: number;
  readonly url: string;
  /** Connections accepted so far. */
  connections(): number;
  /** Connections open now. */
  open(): number;
  close(): Promise<void>;
}

/** What is closed when the test is over. */
export function closedAtEnd<Closable extends { close(): Promise<unknown> }>(made: Closable): Closable {
  onTestFinished(async () => void (await made.close()));
  return made;
}

/** Serves HTTP; `listener` answers. */
export function startHttpServer(listener: RequestListener): Promise<WireServer> {
  const server = createHttpServer({ keepAliveTimeout: 60_000 }, listener);
  return listen(server, 'connection', 'http');
}

/** Accepts connections; `onConnection` does with them what it likes. */
export function startTcpServer(onConnection: (socket: Socket) => void): Promise<WireServer> {
  const server = createTcpServer((socket) => {
    onConnection(socket);
    // Unread, it would never notice that the other side is gone.
    socket.resume();
  });
  return listen(server, 'connection', 'http');
}

/** Makes `server` listen; its connections are those of `event`. */
export async function listen(server: Server, event: string, scheme: string): Promise<WireServer> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on(event, (socket: Socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${scheme}://127.0.0.1:${port}/FileTransferWs`,
    connections: () => accepted,
    open: () => sockets.size,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The whole body of a request. */
export async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** Answers a request once it has arrived completely. */
export function answer(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.req.resume().on('end', () => {
    response.writeHead(status, type === '' ? {} : { 'content-type': type }).end(body);
  });
}

/** Waits until `condition` holds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 2));
}
