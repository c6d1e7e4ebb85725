/** A way between an agent and the database that can fall silent, as a network does, or be cut. */
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export class Relay {
  readonly port: number;
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #isSilent = false;
  #isCut = false;

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on('connection', (here) => this.#join(here, target));
  }

  /** To a port of 127.0.0.1; it listens there, too. */
  static async start(target: number): Promise<Relay> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Relay(server, target);
  }

  /** Nothing passes any more, and nobody is reported: what is said arrives when it is open again. */
  silence(): void {
    this.#isSilent = true;
    for (const [here, there] of this.#pairs) {
      here.pause();
      there.pause();
    }
  }

  /** Connections are reset, and so are new ones. */
  cut(): void {
    this.#isCut = true;
    for (const [here] of this.#pairs) here.resetAndDestroy();
  }

  /** As at the beginning. */
  open(): void {
    this.#isCut = false;
    this.#isSilent = false;
    for (const [here, there] of this.#pairs) {
      here.resume();
      there.resume();
    }
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(here: Socket, target: number): void {
    if (this.#isCut) {
      here.resetAndDestroy();
      return;
    }
    const there = connect({ port: target, host: '127.0.0.1', noDelay: true });
    const pair = [here, there] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [there, here]] as const) {
      from.on('data', (bytes) => to.write(bytes));
      from.on('end', () => to.end());
      from.on('error', () => {});
      from.on('close', () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
    }
    if (this.#isSilent) {
      here.pause();
      there.pause();
    }
  }
}

/** Of the package pg, as far as it is used here. */
interface Client {
  connect(): Promise<void>;
  query<Row>(text: string, values?: readonly unknown[]): Promise<{ rows: Row[] }>;
  end(): Promise<void>;
  on(event: 'error', listener: () => void): void;
}

/** A session of its own, which has to be ended. */
export async function connectTo(url: string): Promise<Client> {
  const { Client } = createRequire(import.meta.url)('pg') as { Client: new (config: object) => Client };
  const client = new Client({ connectionString: url });
  // One that the server ends says so by its next query.
  client.on('error', () => {});
  await client.connect();
  return client;
}

export async function query<Row>(url: string, text: string, values?: readonly unknown[]): Promise<Row[]> {
  const client = await connectTo(url);
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}
