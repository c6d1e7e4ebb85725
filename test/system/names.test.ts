import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { isLoopback, lookupByProgram } from '../../src/system/names.ts';
import { isInstalled } from '../../src/system/program.ts';
import { needsThat } from '../support/needs.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const lookup = (name: string, options: object, signal = new AbortController().signal) =>
  new Promise((resolve) => {
    lookupByProgram(signal)(name, options, (error, ...found) =>
      resolve(error === null ? found : `${error.code}: ${error.message}`),
    );
  });

it(
  'a name is looked up by the resolver of the system, outside of this process',
  needsThat(isInstalled('getent'), 'getent'),
  async () => {
    expect(await lookup('localhost', { all: true })).toEqual([
      expect.arrayContaining([{ address: expect.stringMatching(/^(127\.0\.0\.1|::1)$/), family: expect.any(Number) }]),
    ]);
    expect(await lookup('127.0.0.1', { family: 4 })).toEqual(['127.0.0.1', 4]);
    expect(await lookup('127.0.0.1', { family: 6, all: true })).toBe('ENOTFOUND: there is no 127.0.0.1');
    expect(await lookup('::1', { family: 4, all: true })).toBe('ENOTFOUND: there is no ::1');
    expect(await lookup('no-such-name.invalid', { all: true })).toBe('ENOTFOUND: there is no no-such-name.invalid');
    expect(await lookup('localhost', {}, AbortSignal.abort())).toBe('EAI_AGAIN: no answer for localhost');
    // Not an option of the program.
    expect(await lookup('--help', { all: true })).toBe('ENOTFOUND: there is no --help');
  },
);

it('addresses are read once each, of the name that the resolver is given', async () => {
  const directory = temporaryDirectory();
  const lines = '"192.0.2.7 STREAM name" "192.0.2.7 DGRAM" "2001:db8::7 STREAM" "x y"';
  const script = `[ "$1 $2 $3" = "ahosts -- name" ] && printf '%s\\n' ${lines}`;
  fs.writeFileSync(path.join(directory, 'getent'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  vi.stubEnv('PATH', directory);
  onTestFinished(() => void vi.unstubAllEnvs());
  const [four, six] = [
    { address: '192.0.2.7', family: 4 },
    { address: '2001:db8::7', family: 6 },
  ];
  expect(await lookup('name', { all: true })).toEqual([[four, six]]);
  expect(await lookup('name', { all: true, family: 6 })).toEqual([[six]]);
  expect(await lookup('name', { family: 6 })).toEqual(['2001:db8::7', 6]);
  expect(await lookup('name', {})).toEqual(['192.0.2.7', 4]);
});

it('without the program getent, this process looks a name up', async () => {
  vi.stubEnv('PATH', temporaryDirectory());
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(await lookup('127.0.0.1', {})).toEqual(['127.0.0.1', 4]);
  expect(await lookup('127.0.0.1', { all: true })).toEqual([[{ address: '127.0.0.1', family: 4 }]]);
});

it('a host is this machine by its name, or by an address of the loopback', () => {
  const here = ['localhost', '127.0.0.1', '127.255.0.9', '::1', '[::1]'];
  const others = ['localhost.example', 'my-localhost', '127.0.0.1.example', 'x127.0.0.1', '10.0.0.1', '::11'];
  expect([...here, ...others].filter(isLoopback)).toEqual(here);
});
