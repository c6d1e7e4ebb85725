/** What messages name of the database of a fleet: where it is, and nothing of who signs in. */
import { expect, it } from 'vitest';
import { Database } from '../../src/fleet/database/database.ts';
import { Secrets } from '../../src/redact.ts';

it.each([
  ['postgresql://anna:hunter2@db.example.org/jobs', 'db.example.org/jobs'],
  ['postgresql://db.example.org:5433', 'db.example.org:5433'],
  ['postgresql:///jobs?host=/run/postgresql', '/run/postgresql/jobs'],
  ['postgresql:///', 'this machine'],
  ['none', 'its address is none'],
])('the database at %s is named %s', async (url, where) => {
  const pool = { query: () => Promise.reject(new Error('broken')), end: async () => {} };
  const connect = async () => ({ ...pool, connect: pool.query });
  const secrets = new Secrets();
  const database = await Database.open({ url, schema: 'jobtail', secrets, connect }, { name: 'test' });
  expect(database.where).toBe(where);
  await expect(database.query('SELECT 1')).rejects.toThrow(where);
  expect(secrets.hide('it is hunter2')).toBe(url.includes('hunter2') ? 'it is ***' : 'it is hunter2');
});
