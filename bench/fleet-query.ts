/** Questions to the PostgreSQL of a fleet, past the fleet. */
import { createRequire } from 'node:module';

/** Of the package pg, as far as it is used here. */
interface Client {
  connect(): Promise<void>;
  query<Row>(text: string, values?: readonly unknown[]): Promise<{ rows: Row[] }>;
  end(): Promise<void>;
  on(event: 'error', listener: () => void): void;
}

/** A session of its own; `options` are those of the server. It has to be ended. */
export async function connectTo(url: string, options?: string): Promise<Client> {
  const { Client } = createRequire(import.meta.url)('pg') as { Client: new (config: object) => Client };
  const client = new Client({ connectionString: url, options });
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
