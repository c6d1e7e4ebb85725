import { chmod } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { failureOf } from '../support/errors.ts';
import { needsThat } from '../support/needs.ts';
import { numRuns } from '../support/property-runs.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { write, load } = configDirectory();

describe('a configuration that is fine', () => {
  // docs/configuration.md has them, and is made of the schema (test/cli/command-line.test.ts).
  it('is the example of the repository, with the same defaults', async () => {
    const file = resolve(import.meta.dirname, '../../config.example.yaml');
    const beside = (name: string) => resolve(file, '..', name);
    const example = await loadConfig(file);
    const minimal = await load(
      'service: {protocol: rest, baseUrl: https://m.example.org}\nauth: {username: alice, passwordFile: password}\n',
    );
    const { file: _e, service: exampleService, auth: exampleAuth, ...exampleRest } = example;
    const { file: _m, service: minimalService, auth: minimalAuth, ...minimalRest } = minimal;
    const mirror = { ...minimalRest.mirror, directory: beside('mirror') };
    const api = { directory: null, controlGroup: null };
    expect(exampleRest).toEqual({ ...minimalRest, mirror, api, state: { directory: beside('state') } });
    expect(Object.keys(exampleService)).toEqual(Object.keys(minimalService));
    expect(exampleAuth).toEqual({ ...minimalAuth, secret: { kind: 'file', path: beside('password') } });
  });

  it('is called by its host in a fleet, unless it is said otherwise', async () => {
    const url = 'postgresql://jobtail@db.example.org/jobtail?sslmode=verify-full';
    const { fleet } = await load(`${MINIMAL}fleet: {url: '${url}'}\n`);
    expect(fleet?.name).toMatch(/^[\w.-]{1,63}$/);
    // Linux allows one character more.
    onTestFinished(() => {
      vi.restoreAllMocks();
      syncBuiltinESMExports();
    });
    vi.spyOn(os, 'hostname').mockReturnValue(`node 1${'x'.repeat(58)}`);
    syncBuiltinESMExports();
    const { fleet: ofLongHost } = await load(`${MINIMAL}fleet: {url: '${url}'}\n`);
    expect(ofLongHost?.name).toBe(`node-1${'x'.repeat(57)}`);
  });

  it('keeps every 64-bit id exact, as a number and as text', async () => {
    const long = fc.bigInt({ min: 1n, max: 2n ** 63n - 1n });
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(long, { minLength: 1, maxLength: 5 }), fc.boolean(), async (ids, quoted) => {
        const written = ids.map((id) => (quoted ? `"${id}"` : `${id}`));
        const entries = written.map((id) => `  - {job: ${id}, tasks: [${written.join(', ')}]}\n`);
        const { watch } = await load(`${MINIMAL}watch:\n${entries.join('')}`);
        expect(watch.map((entry) => entry.job)).toEqual(ids.map(String));
        expect(watch[0]?.tasks).toEqual(ids.map(String));
      }),
      numRuns(50),
    );
  });
});

it(
  'a file without rights is refused',
  needsThat(process.getuid?.() !== 0, 'a file without rights: root reads it'),
  async () => {
    const file = await write(MINIMAL);
    await chmod(file, 0);
    expect((await failureOf(loadConfig(file))).message).toBe(`${file}: no right to read this file`);
  },
);
