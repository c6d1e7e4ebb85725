/** What messages name of the database of a fleet: where it is, and nothing of who signs in. */
import { expect, it } from 'vitest';
import { isPlainDatabase } from '../../src/config/config.ts';
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

it.each(['postgresql://anna:100%@db/jobs', 'postgresql://anna:%zz@db/jobs', 'postgresql://%zz/jobs'])(
  'the address %s is refused with what is wrong with it, and without it',
  async (url) => {
    const opened = Database.open({ url, schema: 'jobtail', secrets: new Secrets() }, { name: 'test' });
    await expect(opened).rejects.toMatchObject({ code: 'config', message: expect.not.stringContaining('anna') });
    expect(() => isPlainDatabase(url)).not.toThrow();
  },
);

it.each([
  ['28P01', 'check the user and the password'],
  ['3D000', 'createdb'],
  ['42501', 'the right to create a schema'],
  ['53300', 'raise max_connections'],
  ['533001', 'check it with agent check'],
  ['X53300', 'check it with agent check'],
  ['ECONNREFUSED', 'check the address'],
  ['ENOTFOUND', 'check the address'],
  ['CERT_HAS_EXPIRED', 'sslrootcert='],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'sslrootcert='],
  [undefined, 'check it with agent check'],
])('the hint of a failure with the code %s is %s', async (code, hint) => {
  const failure = Object.assign(new Error(''), code && { code });
  for (const thrown of [failure, new AggregateError([failure, new Error('of another address')])]) {
    const pool = { query: () => Promise.reject(thrown), end: async () => {} };
    const address = { url: 'postgresql://db/jobs', schema: 'jobtail', secrets: new Secrets() };
    const connect = async () => ({ ...pool, connect: pool.query });
    const database = await Database.open({ ...address, connect }, { name: 'test' });
    const message = `the database of the fleet (db/jobs) cannot be used: ${code}`;
    const error = { code: 'fleet', message, hint: expect.stringContaining(hint) };
    await expect(database.query('SELECT 1')).rejects.toMatchObject(error);
  }
});
