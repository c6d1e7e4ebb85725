import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that the system assigns: a client that connects while the server is down must not get its port. */
const PORTS = { first: 20_000, count: 10_000 };

/** A port that is free on 127.0.0.1. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
