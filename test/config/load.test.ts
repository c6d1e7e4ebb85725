import { chmod, mkdir } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { join, resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import type { JobtailError } from '../../src/errors.ts';
import { failureOf } from '../support/errors.ts';
import { needsThat } from '../support/needs.ts';
import { numRuns } from '../support/property-runs.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { path, write, load, refusal } = configDirectory();

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

  it('may have a byte-order mark and CRLF', async () => {
    const { service } = await load(MINIMAL);
    expect(await load(`\uFEFF${MINIMAL.replaceAll('\n', '\r\n')}`)).toMatchObject({ service });
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

describe('a file that cannot be used', () => {
  it('has more than a MiB', async () => {
    const [text, bytes] = [`${MINIMAL}#`, 1024 * 1024];
    expect((await load(text.padEnd(bytes, 'x'))).service.protocol).toBe('soap');
    expect((await refusal(text.padEnd(bytes + 1, 'x'))).message).toContain('the file is larger than 1048576 bytes');
  });

  it.each([
    ['nothing there', async () => path('missing.yaml'), 'there is no such file'],
    ['a file in place of a directory', async () => join(await write('x'), 'config.yaml'), 'there is no such file'],
    ['a directory', () => mkdir(path('d'), { recursive: true }).then(() => path('d')), 'this is a directory'],
    ['an empty file', () => write(''), 'the file contains no configuration'],
    ['Latin-1', () => write(Buffer.from('auth: {username: J\xe1n}', 'latin1')), 'the file is not UTF-8 text'],
    ['UTF-16', () => write(Buffer.from('\uFEFFauth: {}', 'utf16le')), 'the file is not UTF-8 text'],
  ])('says so: %s', async (_what, make, said) => {
    const file = await make();
    const error = await failureOf(loadConfig(file));
    expect(error.code).toBe('config');
    expect(error.message).toContain(`${file}: ${said}`);
    expect(error.hint).toBeTruthy();
  });

  it.each([
    [0, 'config', 'other users than root can change this file, and root would run its programs'],
    [1_000, undefined, undefined],
  ])('that another user can change is refused to root: as user %i, the error is %s', async (user, code, reason) => {
    const file = await write(MINIMAL);
    await chmod(file, 0o646);
    const own = vi.spyOn(process, 'geteuid').mockReturnValue(user);
    onTestFinished(() => own.mockRestore());
    const error = await loadConfig(file).then(
      () => undefined,
      (thrown: JobtailError) => thrown,
    );
    expect([error?.code, error?.message]).toEqual([code, reason && `${file}: ${reason}`]);
    expect(error?.hint).toBe(
      code && 'run the agent as the user of the file, or make root the owner of the file and its directories',
    );
  });

  it(
    'says so: no right to read it',
    needsThat(process.getuid?.() !== 0, 'a file without rights: root reads it'),
    async () => {
      const file = await write(MINIMAL);
      await chmod(file, 0);
      expect((await failureOf(loadConfig(file))).message).toBe(`${file}: no right to read this file`);
    },
  );
});

it.each([
  ['brackets without end', '['.repeat(10_000), /RESOURCE_EXHAUSTION/],
  ['aliases without end', billionLaughs(), /aliases|expected/],
])('%s are refused', async (_what, yaml, said) => {
  expect(await refusal(yaml)).toMatchObject({ code: 'config', message: expect.stringMatching(said) });
});

function billionLaughs(): string {
  const lines = Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`);
  return `a0: &a0 [x]\n${lines.join('\n')}\n`;
}
