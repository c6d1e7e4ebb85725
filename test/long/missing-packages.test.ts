/** The end of a run where Debian packages are missing: as on a machine whose PATH leads nowhere. */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { PACKAGE_OF } from '../support/needs.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The last lines of a run of some files. */
async function endOf(...files: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [`${ROOT}node_modules/vitest/vitest.mjs`, 'run', ...files],
    { cwd: ROOT, env: { PATH: '/nowhere' } },
  );
  return stdout.trimEnd().split('\n').slice(-3).join('\n');
}

describe.concurrent('at its end a run', { timeout: 120_000 }, () => {
  it('names the packages for what was skipped, and no others', async () => {
    expect(await endOf('test/remote/http/tls.test.ts', 'test/simulator/cluster/transfer-keys.test.ts')).toMatch(
      /\n([1-9]\d*) skipped: .*: apt-get install -y --no-install-recommends openssh-client openssl\n[1-9]\d* passed, 0 failed, \1 skipped in 2 files; /,
    );
  });

  it('says that nothing was skipped', async () => {
    expect(await endOf('test/linked-abort.test.ts')).toMatch(/^[1-9]\d* passed, 0 failed, 0 skipped in 1 files; /m);
  });
});

it('the packages are those that the checks of a clean checkout install', () => {
  const script = fs.readFileSync(`${ROOT}.ci/run`, 'utf8');
  const installed = /apt-get install .*--no-install-recommends ([^>]+)/.exec(script)?.[1]?.trim().split(' ') ?? [];
  // Of prometheus only promtool is taken; lxml and python3 come with zeep; bash and the rest of util-linux are on every Debian.
  const others = ['bash', 'bsdutils', 'prometheus', 'python3-lxml', 'python3-minimal'];
  expect([...new Set(Object.values(PACKAGE_OF))].filter((name) => !installed.includes(name)).sort()).toEqual(others);
});
