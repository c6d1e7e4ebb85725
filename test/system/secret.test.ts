/** Secrets from files, commands and systemd credentials; secrets.txt has the refusal of each that cannot be used. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { SecretSource } from '../../src/auth.ts';
import { Secret, type SecretOptions } from '../../src/system/secret.ts';
import { failureOf, NEVER, secretDirectory } from '../remote/signin/server.ts';

const { path, write } = secretDirectory();
const SECRET = 'correct-horse-battery-staple';

const secretOf = (source: SecretSource, options: Partial<SecretOptions> = {}) =>
  new Secret({ source, name: 'password', env: {}, onWarning: () => undefined, ...options });
const fileSecret = (file: string) => secretOf({ kind: 'file', path: file });
const commandSecret = (...argv: [string, ...string[]]) => secretOf({ kind: 'command', argv, timeoutMs: 30_000 });
/** The output of a script in a file, so that its words are no arguments. */
const scriptSecret = async (script: string, timeoutMs = 30_000) =>
  secretOf({ kind: 'command', argv: ['/bin/sh', await write('script', script)], timeoutMs });

it('a program gets the usual variables of the agent and those that are named, and no other', async () => {
  const usual = { PATH: process.env['PATH'], HOME: '/h', USER: 'u', LANG: 'C.UTF-8', LC_TIME: 'C', TZ: 'UTC' };
  const others = { NAMED: 'n', PGPASSWORD: 'p', VAULT_TOKEN: 't', LD_PRELOAD_: 'l', XPATH: 'x', PATH2: 'x' };
  for (const [name, value] of Object.entries({ ...usual, ...others })) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  const argv = [process.execPath, '-e', 'console.log(JSON.stringify(process.env))'];
  const source = { kind: 'command', argv, timeoutMs: 30_000, environment: ['NAMED'] } as const;
  const given = JSON.parse(await secretOf(source).read(NEVER)) as Record<string, string>;
  expect(given).toMatchObject({ ...usual, NAMED: 'n' });
  expect(Object.keys(given).filter((name) => name in others)).toEqual(['NAMED']);
});

it('a secret is the content of its file, or what its program prints each time, without the end of the line', async () => {
  fs.symlinkSync('two', path('link'));
  const counting = await write('counting', `echo x >> ${path('runs')}; wc -l < ${path('runs')} | tr -d ' '`);
  const secrets = {
    'no newline': fileSecret(await write('one', SECRET)),
    'a newline': fileSecret(await write('two', `${SECRET}\n`)),
    CRLF: fileSecret(await write('three', `${SECRET}\r\n`)),
    'blanks, which belong to it': fileSecret(await write('four', ` ${SECRET} \n`)),
    'a byte-order mark': fileSecret(await write('five', `\uFEFF${SECRET}\n`)),
    'characters of all kinds': fileSecret(await write('six', 'žluťoučký 😀 "\\\n')),
    'the greatest length': fileSecret(await write('seven', 'x'.repeat(65_536))),
    'lines of a key': secretOf({ kind: 'file', path: await write('eight', 'a\nb\n') }, { isPem: true }),
    'a link': fileSecret(path('link')),
    'a credential': secretOf({ kind: 'credential', name: 'two' }, { env: { CREDENTIALS_DIRECTORY: path('') } }),
    'a program without a shell': commandSecret('printf', '%s\n', `$HOME ; ${SECRET} *`),
    'a program': commandSecret('/bin/sh', counting),
  };
  const read = async () => Promise.all(Object.values(secrets).map((secret) => secret.read(NEVER)));
  const found = [SECRET, SECRET, SECRET, ` ${SECRET} `, SECRET, 'žluťoučký 😀 "\\', 'x'.repeat(65_536), 'a\nb', SECRET];
  expect(await read()).toEqual([...found, SECRET, `$HOME ; ${SECRET} *`, '1']);
  expect((await read()).at(-1)).toBe('2');
  const changed = () => Promise.all([secrets['no newline'], secrets['a program']].map((secret) => secret.hasChanged()));
  expect(await changed()).toEqual([false, false]);
  await write('one', 'another');
  expect(await changed()).toEqual([true, false]);
  await read();
  expect(await changed()).toEqual([false, false]);
});

it('a secret that cannot be used is refused with its place, the reason and what to do, and no part of it', async () => {
  const env = { CREDENTIALS_DIRECTORY: path('') };
  fs.mkdirSync(path('directory'));
  execFileSync('mkfifo', [path('pipe')]);
  const asking = `while :; do printf 'first\\nenter the code\\n' >&2; sleep 0.01; done`;
  const refused: Record<string, () => Promise<Secret> | Secret> = {
    'an absent file': () => fileSecret(path('absent')),
    'a file below another one': async () => fileSecret(`${await write('fine', SECRET)}/below`),
    'a forbidden file': async () => fileSecret(await write('forbidden', SECRET, 0o000)),
    'an empty file': async () => fileSecret(await write('empty', '')),
    'a newline': async () => fileSecret(await write('newline', '\n')),
    lines: async () => fileSecret(await write('lines', `${SECRET}\nuser: alice`)),
    'a control character': async () => fileSecret(await write('control', `${SECRET}\u0000`)),
    'no UTF-8': async () => fileSecret(await write('latin1', Buffer.from(`${SECRET}\xe1`, 'latin1'))),
    'one byte too much': async () => fileSecret(await write('large', 'x'.repeat(65_537))),
    'a directory': () => fileSecret(path('directory')),
    'a pipe': () => fileSecret(path('pipe')),
    'an absent credential': () => secretOf({ kind: 'credential', name: 'none' }, { env }),
    'a credential outside of a unit': () => secretOf({ kind: 'credential', name: 'cluster' }),
    'another code': () => secretOf({ kind: 'file', path: path('absent') }, { code: 'local-io', name: 'address' }),
    'a program that waits for input': () => scriptSecret('cat'),
    'a failure': () => scriptSecret('exit 3'),
    'a failure with a reason': () => scriptSecret('echo "no such entry" >&2; exit 1'),
    'a failure that tells the secret': () => scriptSecret(`echo ${SECRET}; echo "got ${SECRET}" >&2; exit 1`),
    'a signal': () => scriptSecret('kill -9 $$'),
    'two lines': () => scriptSecret(`echo ${SECRET}; echo two`),
    'too much': () => scriptSecret(`while echo ${SECRET}; do :; done`),
    'a long reason': () => scriptSecret(`head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1`),
    'a reason that is cut within the secret': () =>
      scriptSecret(`echo ${SECRET}; printf '%s%3980s' ${SECRET} end >&2; exit 1`),
    'an absent program': () => commandSecret('/nowhere/program', SECRET),
    'no program': () => commandSecret(path('fine'), SECRET),
    'an argument that none can have': () => commandSecret('/bin/echo', `${SECRET}\0`),
    'an argument that is repeated': () => commandSecret('/bin/sh', '-c', 'echo "unknown $0" >&2; exit 2', SECRET),
    'short arguments, which are options': () =>
      commandSecret('/bin/sh', '-c', 'echo "$0 and $1" >&2; exit 2', 'w0rd', '-v9'),
    'no time': () => scriptSecret('sleep 1000', 1),
    'a program that asks for a code': () => scriptSecret(asking, 500),
    'a stop before it': () => scriptSecret('exit 1'),
  };
  let printed = '';
  const isRoot = process.geteuid?.() === 0;
  onTestFinished(() => void (isRoot && process.seteuid?.(0)));
  for (const [name, make] of Object.entries(refused)) {
    const secret = await make();
    // Root may read all.
    if (isRoot) process.seteuid?.(name === 'a forbidden file' ? 65_534 : 0);
    const failed = failureOf(secret.read(name === 'a stop before it' ? AbortSignal.abort() : NEVER), [SECRET]);
    const { code, message, hint } = await failed;
    if (isRoot) process.seteuid?.(0);
    printed += `${name}: ${code}: ${message}\n  ${hint?.replace(/user \S+ \(/, 'user USER (')}\n`;
  }
  await expect(printed.replaceAll(path(''), 'DIR/').replaceAll('DIR//', 'DIR/')).toMatchFileSnapshot('secrets.txt');
});

it('a secret that all can read is warned of, once', async () => {
  const warnings: string[] = [];
  const onWarning = (message: string) => warnings.push(message);
  const open = secretOf({ kind: 'file', path: await write('open', SECRET, 0o644) }, { onWarning });
  expect([await open.read(NEVER), await open.read(NEVER)]).toEqual([SECRET, SECRET]);
  await secretOf({ kind: 'file', path: await write('closed', SECRET, 0o640) }, { onWarning }).read(NEVER);
  // systemd keeps those of units.
  const env = { CREDENTIALS_DIRECTORY: path('') };
  await secretOf({ kind: 'credential', name: 'open' }, { env, onWarning }).read(NEVER);
  expect(warnings).toEqual([`every user can read ${path('open')}, which contains the password: chmod 600 it`]);
});
