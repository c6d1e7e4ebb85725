/** What a run says at its end where Debian packages are missing: as on a machine whose PATH leads nowhere. */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { PACKAGE_OF } from '../support/needs.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** What the last line of a run of some files says. */
async function lastLineOf(...files: string[]): Promise<string | undefined> {
  const { stderr } = await promisify(execFile)(
    process.execPath,
    [`${ROOT}node_modules/vitest/vitest.mjs`, 'run', ...files],
    { cwd: ROOT, env: { PATH: '/nowhere' } },
  );
  return stderr.trimEnd().split('\n').at(-1);
}

describe.concurrent('at its end a run', { timeout: 120_000 }, () => {
  it('names the packages for what was skipped, and no others', async () => {
    expect(await lastLineOf('test/remote/http/tls.test.ts', 'test/simulator/cluster/transfer-keys.test.ts')).toMatch(
      /^[1-9]\d* tests were skipped, .*: apt-get install -y --no-install-recommends openssh-client openssl$/,
    );
  });

  it('says nothing where nothing was skipped', async () => {
    expect(await lastLineOf('test/linked-abort.test.ts')).toBe('');
  });
});

it('the packages are those that the checks of a clean checkout install', () => {
  const script = fs.readFileSync(`${ROOT}.ci/run`, 'utf8');
  const installed = /apt-get install .*--no-install-recommends ([^>]+)/.exec(script)?.[1]?.trim().split(' ') ?? [];
  // Of prometheus only promtool is taken; lxml and python3 come with zeep; bash and the rest of util-linux are on every Debian.
  const others = ['bash', 'bsdutils', 'prometheus', 'python3-lxml', 'python3-minimal'];
  expect([...new Set(Object.values(PACKAGE_OF))].filter((name) => !installed.includes(name)).sort()).toEqual(others);
});
