/** Secrets, servers that quote them, and the search for them in all that an agent leaves. */
import fs from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import type { Place } from './e2e-place.ts';
import type { Program } from './e2e-program.ts';

/** With characters that are written in another way in JSON, XML and URLs; either half alone would be a leak, too. */
export const PASSWORD = 'ključ&<"Vault">%/+ 0123456789abcdef';
/** Stands beside the secret in what a server says, to show that its words arrive where they may. */
export const MARK = 'words-of-the-server';

const hexOf = (text: string) => Buffer.from(text).toString('hex');
const inPercent = (text: string) => hexOf(text).replaceAll(/../g, '%$&');
const inBase64 = (text: string) => Buffer.from(text).toString('base64').replace(/=+$/, '');

/** Parts of a secret, and other ways to write it: three of them at a time fit into what is quoted of a fault. */
export const quotationsOf = (secret: string): string[] =>
  [
    [secret.slice(0, -1), secret.slice(1).toUpperCase(), secret.slice(3, -3).replaceAll(/.{6}/gu, '$& ')],
    [inBase64(secret), inBase64(`:${secret.slice(0, -1)}`), Buffer.from(`alice:${secret}`).toString('base64url')],
    [
      hexOf(secret),
      hexOf(secret.slice(1))
        .toUpperCase()
        .replaceAll(/..(?=.)/g, '$&-'),
    ],
    [inPercent(secret), JSON.stringify(JSON.stringify(secret))],
  ].map((some) => some.join(' / '));

/** What of a secret must stand nowhere: eight characters in a row, as they are or written in another way. */
function runsOf(secret: string): Set<string> {
  const bytes = Buffer.from(secret);
  const runs = new Set<string>();
  const add = (form: string, length: number) => {
    for (let at = 0; at + length <= form.length; at++) runs.add(form.slice(at, at + length).toLowerCase());
  };
  add(bytes.toString('latin1'), 8);
  add(JSON.stringify(secret).slice(1, -1), 8);
  add(encodeURIComponent(secret), 12);
  add(secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'), 12);
  add(hexOf(secret), 16);
  add(inPercent(secret), 24);
  for (const before of ['', ':', '::']) add(inBase64(`${before}${secret}`).slice(before.length * 2), 10);
  return runs;
}

/** All that the agent left: what its commands said, how they were called, and every file it wrote, by name. */
export function traces(place: Place, running: Program): Map<string, Buffer> {
  const traces = new Map<string, Buffer>();
  for (const [index, { args, stdout, stderr }] of place.programs.entries()) {
    traces.set(`agent ${args.join(' ')} (${index})`, Buffer.from(`${args.join('\0')}\n${stdout}\n${stderr}`));
  }
  for (const name of ['cmdline', 'environ']) {
    const file = `/proc/${running.pid}/${name}`;
    if (fs.existsSync(file)) traces.set(file, fs.readFileSync(file));
  }
  for (const directory of [place.state, place.mirror]) {
    for (const entry of fs.readdirSync(directory, { recursive: true, withFileTypes: true })) {
      const file = path.join(entry.parentPath, entry.name);
      if (entry.isFile()) traces.set(file, fs.readFileSync(file));
    }
  }
  return traces;
}

export function expectNoSecret(found: ReadonlyMap<string, Buffer>, secrets: readonly string[]): void {
  const leaks = [...found].flatMap(([name, bytes]) => {
    const text = bytes.toString('latin1').toLowerCase();
    return secrets
      .flatMap((secret) => [...runsOf(secret)])
      .flatMap((run) => {
        const at = text.indexOf(run);
        return at < 0 ? [] : [`${name}: ...${text.slice(Math.max(0, at - 80), at)}[${run}]`];
      });
  });
  expect(leaks.slice(0, 10)).toEqual([]);
}
