/** The real rsync on both sides, and a script that runs the command in the place of SSH. */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { GROWING_DIRECTORY } from '../../src/direct/directories.ts';
import { until } from '../support/e2e-until.ts';
import { needs } from '../support/needs.ts';
import { SshPlace } from './ssh-place.ts';

/** A place with a host that is this machine, and with what rsync was called with, a line for each run. */
function placeWith() {
  const place = new SshPlace();
  const file = path.join(place.directory, 'runs');
  const noted = `echo "$@" >> ${file}`;
  const rsyncIs = (...lines: readonly string[]) => place.rsyncIs(noted, ...lines);
  place.hostIs('exec sh -c "$SSH_ORIGINAL_COMMAND"');
  rsyncIs('exec $RSYNC "$@"');
  return {
    place,
    rsyncIs,
    runs: () => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trimEnd().split('\n') : []),
  };
}

describe('a transfer by rsync', needs('rsync'), () => {
  it('passes the limits of the request on, and compares with what is there', async () => {
    const { place, runs } = placeWith();
    // The name is like what rsync prints of its progress.
    const name = '11/a 9,999 99999 99%';
    place.put(name, 'a');
    const method = await place.lend();
    await place.fetch(place.transfer(), method, [name]);
    expect([Math.max(...place.progress), ...place.came.keys()]).toEqual([1, name]);
    const limits = { maxFileBytes: 77, bytesPerSecond: 5_000_000 };
    await place.fetch(place.transfer({ idleMs: 6_500 }), method, [name], limits);
    await place.fetch(place.transfer(), method, [name], { bytesPerSecond: 1 });
    const usual = (timeout: number, from = '', more = '') =>
      [
        '--rsh=ssh -F CONFIG --ignore-times --files-from=- --from0',
        '--temp-dir=.jobtail-0000000000000001.partial --partial-dir=.jobtail-0000000000000000.partial',
        `${from}--chmod=D700,F640 --timeout=${timeout} --out-format=+%b %n --info=progress2,skip1`,
        `--no-human-readable --outbuf=L ${more}-- transfer:${place.cluster}/ ${place.arrival}/rsync/`,
      ].join(' ');
    const present = `--copy-dest=${place.results} `;
    expect(runs().map((run) => run.replace(/'.*\/config'/, 'CONFIG'))).toEqual([
      usual(60),
      usual(7, present, '--max-size=77 --bwlimit=4883 '),
      usual(60, present, '--bwlimit=1 '),
    ]);
    expect(fs.statSync(path.join(place.results, name)).mode & 0o777).toBe(0o640);
  });

  it('that falls silent in the middle is not tried again', async () => {
    const { place, runs } = placeWith();
    place.hostCuts(500_000, undefined, true);
    place.put('11/large', randomBytes(3_000_000));
    const fetched = place.fetch(place.transfer({ idleMs: 700 }), await place.lend(), ['11/large']);
    const error = { code: 'interrupted', message: expect.stringContaining('stood still') };
    await expect(fetched).rejects.toMatchObject(error);
    expect([runs().length, place.came.size]).toEqual([1, 0]);
  });

  it('counts the bytes of all attempts, and hands a file over while others are still on their way', async () => {
    const { place, rsyncIs } = placeWith();
    const arrived = path.join(place.arrival, 'rsync/11/a');
    const once = path.join(place.directory, 'once');
    rsyncIs(
      `[ -e ${once} ] || { : > ${once}; printf '  500   0%%\\r'; exit 12; }`,
      "printf '  200  9%%\\r  180  8%%\\r 12'; sleep 0.1; printf '00 12%%\\n'",
      `mkdir -p ${path.dirname(arrived)}; echo a > ${arrived}; printf '+1 11/a\\n'`,
      `for _ in $(seq 200); do [ -e ${arrived} ] || exit 0; sleep 0.1; done; exit 13`,
    );
    await place.fetch(place.transfer(), await place.lend(), ['11/a']);
    expect(place.progress).toEqual([500, 700, 700, 1_700]);
    expect([place.batches, place.reached]).toEqual([[1], 2]);
  });

  it('hands over what came while the rest is on its way, and keeps what came of a file when it is stopped', async () => {
    const { place, runs } = placeWith();
    const names = Array.from({ length: 60 }, (_, number) => `11/f${number}`);
    for (const name of names) place.put(name, name);
    const large = randomBytes(8_000_000);
    place.put('12/large', large);
    const method = await place.lend();
    place.hostCuts(4_000_000, 1, true);
    const stop = new AbortController();
    const fetching = place.fetch(place.transfer(), method, [...names, '12/large'], { signal: stop.signal });
    // In the middle of the large one, which comes last.
    const growing = path.join(place.arrival, 'rsync', GROWING_DIRECTORY);
    const isGrowing = () =>
      place
        .files(growing)
        .some((name) => (fs.statSync(path.join(growing, name), { throwIfNoEntry: false })?.size ?? 0) > 0);
    const half = until('the small ones to be handed over', () => place.came.size === names.length && isGrowing());
    await Promise.race([fetching, half]);
    stop.abort();
    await expect(fetching).rejects.toMatchObject({ code: 'aborted' });
    expect([...place.came.keys()].sort()).toEqual([...names].sort());
    expect(place.batches.length).toBeLessThan(30);
    expect(place.files(place.arrival)).toEqual([expect.stringMatching(/partial\/large$/)]);
    await place.fetch(place.transfer(), method, ['12/large']);
    expect(place.came.get('12/large')?.equals(large)).toBe(true);
    expect(runs()).toHaveLength(2);
  });

  it('that has more files than one run takes asks for each of them', async () => {
    const { place, runs } = placeWith();
    const names = Array.from({ length: 10_001 }, (_, number) => `11/f${number}`);
    const there = ['11/f0', '11/f9999', '11/f10000'];
    for (const name of there) place.put(name, name);
    await place.fetch(place.transfer(), await place.lend(), names);
    expect([...place.came.keys()]).toEqual(there);
    expect([runs().length, place.reached]).toEqual([2, 2]);
  });

  it('asks what it skipped until it is stopped', async () => {
    const { place, rsyncIs, runs } = placeWith();
    fs.mkdirSync(path.join(place.cluster, '11'));
    fs.symlinkSync('nowhere', path.join(place.cluster, '11/dead'));
    rsyncIs('case "$*" in *--list-only*) sleep 100;; *) exec $RSYNC "$@";; esac');
    const stop = new AbortController();
    const fetched = place.fetch(place.transfer(), await place.lend(), ['11/dead'], { signal: stop.signal });
    fetched.catch(() => {});
    await until('the list to be asked for', () => runs().length === 2);
    stop.abort();
    await expect(fetched).rejects.toMatchObject({ code: 'aborted' });
  });

  it('from a host that floods ends', async () => {
    const { place } = placeWith();
    const method = await place.lend();
    for (const flood of ['yes "flood flood" >&2', 'exec cat /dev/urandom']) {
      place.hostIs(flood);
      await expect(place.fetch(place.transfer({ idleMs: 400 }), method, ['11/a'])).rejects.toThrow('cluster.example');
    }
    expect([place.came.size, ...place.files(place.arrival)]).toEqual([0]);
  });

  it('that stands still says so, after more time where rsync reads what is there before anything comes', async () => {
    const { place, rsyncIs, runs } = placeWith();
    const method = await place.lend();
    const standsStill = async (seconds: string) => {
      await expect(place.fetch(place.transfer({ idleMs: 700 }), method, ['11/a'])).rejects.toMatchObject({
        code: 'interrupted',
        message: `the transfer from cluster.example stood still: the program rsync did nothing for ${seconds} s, and was ended`,
        hint: expect.stringContaining('what arrived is kept'),
      });
      await until('the key to be gone', () => place.files(place.runtime).length === 0);
    };
    place.hostIs('exec sleep 100');
    await standsStill('0.7');
    expect(runs()).toHaveLength(1);
    const put = (name: string, bytes: number) => {
      fs.mkdirSync(path.dirname(path.join(place.jobDirectory, name)), { recursive: true });
      fs.writeFileSync(path.join(place.jobDirectory, name), Buffer.alloc(bytes));
    };
    put('results/11/a', 2_000_001);
    await standsStill('0.801');
    put('.direct/rsync/11/.jobtail-0000000000000000.partial/a', 3_000_000);
    // A slow file that grows may take longer.
    const growing = path.join(place.arrival, 'rsync', GROWING_DIRECTORY, '.a');
    rsyncIs(`for i in $(seq 20); do echo >> ${growing}; sleep 0.1; done; rm ${growing}`);
    await place.fetch(place.transfer({ idleMs: 700 }), method, ['11/a']);
    // Words alone are no progress.
    rsyncIs('while sleep 0.05; do echo alive; done');
    await standsStill('0.85');
  });
});
