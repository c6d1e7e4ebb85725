/** What messages name of the database of a fleet: where it is, and nothing of who signs in. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { isPlainDatabase } from '../../src/config/config.ts';
import { asJobtailError } from '../../src/errors.ts';
import { Database } from '../../src/fleet/database/database.ts';
import { Secrets } from '../../src/redact.ts';
import { expectCases } from '../support/errors.ts';

it('each failure of a database is named with where it is and with a hint, as is written in database.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'database.txt'), async (written) => {
    const [url = '', code = '', ...words] = written.split(' ');
    expect(() => isPlainDatabase(url)).not.toThrow();
    const failure = Object.assign(new Error(words.join(' ')), code !== '-' && { code });
    const secrets = new Secrets();
    const shown = (thrown: unknown) => {
      const { code: ofError, message, hint } = asJobtailError(thrown);
      return [`${ofError}: ${message}`, `(${hint})`];
    };
    const results: string[][] = [];
    for (const thrown of [failure, new AggregateError([failure, new Error('of another address')])]) {
      const pool = { query: () => Promise.reject(thrown), end: async () => {} };
      const connect = async () => ({ ...pool, connect: pool.query });
      const opened = Database.open({ url, schema: 'jobtail', secrets, connect }, { name: 'test' });
      results.push(await opened.then((database) => database.query('SELECT 1')).then(() => [], shown));
      results.push(await opened.then((database) => database.transaction(async () => {})).then(() => [], shown));
    }
    // By one address or several, in a transaction or not.
    expect(new Set(results.map((lines) => lines.join('\n'))).size, written).toBe(1);
    const hidden = secrets.hide('hunter2 is secret');
    return [...(results[0] ?? []), ...(hidden.startsWith('hunter2') ? [] : [hidden])];
  });
});

it('what is thrown without being an error is shown, and what fails to prepare closes the connections', async () => {
  let ended = 0;
  const pool = { query: () => Promise.reject('a text'), end: async () => void ended++ };
  const address = { url: 'postgresql:///', schema: 'jobtail', secrets: new Secrets() };
  const connect = async () => ({ ...pool, connect: pool.query });
  const opened = Database.open({ ...address, connect }, { name: 'test' }, async (database) => {
    await database.query('SELECT 1');
  });
  await expect(opened).rejects.toThrow('the database of the fleet (this machine) cannot be used: a text');
  expect(ended).toBe(1);
});
