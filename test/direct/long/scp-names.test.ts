import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PATIENCE } from '../../support/e2e-until.ts';
import { needs, SSH } from '../../support/needs.ts';
import { SshPlace } from '../ssh-place.ts';
import { CuttableLine, GATE_NAMES, type Gate, middlewareGate, Sshd } from '../sshd.ts';

const WITH_SSH = { ...PATIENCE, ...needs(...SSH) };

let sshd: Sshd | undefined;
beforeAll(async () => {
  if (!WITH_SSH.skip) sshd = await Sshd.start();
});
afterAll(() => sshd?.stop());

/** A job behind such a gate, and a line that counts the connections. */
async function behind(gate: Gate) {
  if (sshd === undefined) throw new Error('there is no sshd');
  const place = new SshPlace();
  const line = await CuttableLine.to(sshd.port);
  const command = middlewareGate(place.directory, place.cluster, gate);
  const method = await place.lend(sshd, { host: `127.0.0.1:${line.port}`, command });
  const put = (names: readonly string[]) => {
    for (const name of names) place.put(name, `content of ${name}`);
  };
  const fetch = (names: readonly string[], maxFileBytes: number | null = null) =>
    place.fetch(place.transfer(), method, names, { way: 'scp', maxFileBytes });
  const expectExact = () => {
    for (const [name, content] of place.came) expect(content.toString()).toBe(`content of ${name}`);
    expect(place.files(place.arrival)).toEqual([]);
  };
  return { place, line, put, fetch, expectExact };
}

const sorted = (names: Iterable<string>) => [...names].sort();

describe.each(GATE_NAMES)('a gate that %s', WITH_SSH, (gate) => {
  it('lets 308 files pass in few connections, 300 of them with blanks in their names', async () => {
    const { place, line, put, fetch, expectExact } = await behind(gate);
    const blank = Array.from({ length: 300 }, (_, number) => `11/d${number % 3}/step ${number} of 300.dat`);
    const plain = Array.from({ length: 8 }, (_, number) => `11/plain-${number}.dat`);
    put([...blank, ...plain]);
    await fetch([...blank, ...plain]);
    expect(sorted(place.came.keys())).toEqual(sorted([...blank, ...plain]));
    expectExact();
    expect(line.connections).toBeLessThanOrEqual(4);
  });

  it('costs no other file its way where it refuses a name', async () => {
    const { place, put, fetch, expectExact } = await behind(gate);
    const others = ['11/a', '11/b c', '11/out dir/d', '12/e'];
    const refused = ['11/dots..txt', '11/a&b', '11/a;b', '11/a|b'];
    put([...others, ...refused]);
    await fetch([...refused, ...others]);
    expect([...place.came.keys()]).toEqual(expect.arrayContaining(others));
    if (gate !== 'reads twice') expect(sorted(place.came.keys())).toEqual(sorted([...others, ...refused]));
    expectExact();
  });
});

const EXPANDING = GATE_NAMES.filter((gate) => gate !== 'reads twice');

describe.each(EXPANDING)('by wildcards, a gate that %s', WITH_SSH, (gate) => {
  it('hands out every name that a line can hold', async () => {
    const { place, put, fetch, expectExact } = await behind(gate);
    const odd = [
      "it's",
      '"q"',
      '[a]',
      '{a,b}',
      '*',
      '?',
      '$(id)',
      '`id`',
      '~',
      '#a',
      '-rf x',
      '\\',
      'tab\t',
      ' ',
      '日本',
      '✓ ok',
      'a...b',
    ];
    const names = odd.flatMap((name) => [`11/${name}`, `12/část 0/${name}/deep/${name}`]);
    put(names);
    await fetch(names);
    expect(sorted(place.came.keys())).toEqual(sorted(names));
    expectExact();
  });

  it('takes nothing for a file that only matches, in any directory', async () => {
    const { place, put, fetch, expectExact } = await behind(gate);
    put([
      '11/a b',
      '11/a-b',
      '11/out dir/x',
      '11/out-dir/x',
      '11/out-dir/y',
      '12/a b',
      '13/a-b',
      '14/a b',
      '15/q&r',
      '16/q r',
    ]);
    // Those of 13 and of "out dir/y" are not there, and names like theirs are.
    const names = ['11/a b', '11/out dir/x', '11/out dir/y', '13/a b', '14/a b', '15/q r', '16/q r'];
    await fetch(names);
    expect(sorted(place.came.keys())).toEqual(['11/a b', '11/out dir/x', '14/a b', '16/q r']);
    expectExact();
  });
});
