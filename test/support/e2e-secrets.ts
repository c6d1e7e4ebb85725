/** Secrets in other ways to write them, and the search for them. */
import { expect } from 'vitest';

/** With characters that are written in another way in JSON, XML and URLs; either half alone would be a leak, too. */
export const PASSWORD = 'ključ&<"Vault">%/+ 0123456789abcdef';

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
