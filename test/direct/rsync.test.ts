/** The real rsync on both sides, and a script that runs the command in the place of SSH. */
import { execFileSync } from 'node:child_process';
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
  return { place, rsyncIs, runs: () => fs.readFileSync(file, 'utf8').trimEnd().split('\n') };
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

  it.each<[how: string, cuts: Parameters<SshPlace['hostCuts']>, idleMs: number, runs: number, error?: object]>([
    ['that is cut off goes on where it was', [500_000, 2], 60_000, 3],
    [
      'that falls silent in the middle is not tried again',
      [500_000, undefined, true],
      700,
      1,
      { code: 'interrupted', message: expect.stringContaining('stood still') },
    ],
    [
      'that is cut off again and again ends, and keeps what came',
      [500_000],
      60_000,
      5,
      { code: 'interrupted', message: expect.stringMatching(/^the transfer from cluster\.example broke off: rsync: /) },
    ],
  ])('%s', async (_, cuts, idleMs, times, error) => {
    const { place, runs } = placeWith();
    place.hostCuts(...cuts);
    const content = randomBytes(3_000_000);
    place.put('11/large', content);
    place.put('11/small', 'small');
    const fetched = place.fetch(place.transfer({ idleMs }), await place.lend(), ['11/small', '11/large']);
    await (error === undefined ? fetched : expect(fetched).rejects.toMatchObject(error));
    expect([runs().length, place.came.has('11/large')]).toEqual([times, error === undefined]);
    expect(place.progress).toEqual([...place.progress].sort((a, b) => a - b));
    if (times > 1) expect(place.reached).toBe(times);
    if (error !== undefined)
      return expect(place.files(place.arrival).join()).toMatch(times > 1 ? /partial\/large$/ : '');
    expect([place.came.get('11/large')?.equals(content), place.came.get('11/small')?.toString()]).toEqual([
      true,
      'small',
    ]);
    expect(place.files(place.arrival)).toEqual([]);
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

  const ROOM = 'rsync: write failed: No space left on device (28)';
  const NO_INODE = 'rsync: mkstemp failed: Disk quota exceeded (122)';

  it.each<[code: number, stderr: string, error: object]>([
    [
      12,
      'rsync: no',
      { code: 'unexpected-answer', message: 'rsync cannot read the files on cluster.example: rsync: no' },
    ],
    [255, 'gone', { code: 'unreachable', message: 'cluster.example cannot be reached over SSH: gone' }],
    [30, 'rsync: timeout', { code: 'interrupted', message: expect.stringContaining('brought nothing for 60 s') }],
    [
      11,
      ROOM,
      { code: 'disk-full', message: `no room left for a transfer: ${ROOM}`, hint: expect.stringContaining('free') },
    ],
    [23, NO_INODE, { code: 'disk-full', message: `no room left for a transfer: ${NO_INODE}` }],
  ])('that ends with %i, "%s", before anything came is not tried again', async (code, stderr, error) => {
    const { place, rsyncIs, runs } = placeWith();
    // What has no name yet is no progress: the next attempt does not use it.
    rsyncIs(
      'for at; do :; done; echo x > $at.jobtail-0000000000000001.partial/x',
      `echo "${stderr}" >&2; exit ${code}`,
    );
    const partial = path.join(place.arrival, 'rsync/11/.jobtail-0000000000000000.partial/a');
    fs.mkdirSync(path.dirname(partial), { recursive: true });
    fs.writeFileSync(partial, 'of an earlier transfer');
    await expect(place.fetch(place.transfer(), await place.lend(), ['11/a'])).rejects.toMatchObject(error);
    expect([runs().length, place.reached, fs.existsSync(partial)]).toEqual([1, 0, true]);
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

  it('hands over nothing that an earlier transfer left, and stops when nobody takes what came', async () => {
    const { place } = placeWith();
    place.put('11/a', 'a');
    const method = await place.lend();
    for (const left of ['rsync/11/gone', 'rsync/11/a', 'rsync/.jobtail-0000000000000001.partial/.a.x1', 'f00']) {
      fs.mkdirSync(path.dirname(path.join(place.arrival, left)), { recursive: true });
      fs.writeFileSync(path.join(place.arrival, left), 'left');
    }
    await place.fetch(place.transfer(), method, ['11/a', '11/gone']);
    expect([...place.came].map(([name, content]) => [name, content.toString()])).toEqual([['11/a', 'a']]);
    expect(place.files(place.arrival)).toEqual([]);
    const onFiles = async () => {
      throw new Error('the disk is full');
    };
    await expect(place.fetch(place.transfer(), method, ['11/a'], { onFiles })).rejects.toThrow('the disk is full');
  });

  it.each([
    ['11/plant', '"11/plant"'],
    ['12/plant', '"12/"'],
    [`11/pl${'a'.repeat(240)}`, `"11/pl${'a'.repeat(195)}"`],
    ['11/pl\u00FC\u00FC', '"11/pl\u00FC\u00FC"'],
    ['../plant', undefined],
    ['11/pipe', undefined],
    ['11/link', undefined],
  ])('of a file that was not requested is refused, and nothing of it stays (%#)', async (to, named) => {
    const { place, rsyncIs } = placeWith();
    const from = `11/ask${'e'.repeat(Buffer.byteLength(to) - 7)}d`.slice(0, Buffer.byteLength(to));
    place.put(from, from);
    if (to === '11/pipe') execFileSync('mkfifo', [path.join(place.cluster, to)]);
    else if (to === '11/link') fs.symlinkSync('/etc/passwd', path.join(place.cluster, to));
    else place.put(to, to);
    place.hostSwaps(from, Buffer.from(to).toString('latin1'));
    // Believes every name, as versions before 3.2.5 do.
    rsyncIs('exec $RSYNC --trust-sender "$@"');
    const fetched = place.fetch(place.transfer({ idleMs: 5_000 }), await place.lend(), [from]);
    const end = await fetched.catch((error: unknown) => error);
    const code = 'unexpected-answer';
    const message = `cluster.example sends a file that was not requested: ${named}`;
    if (named !== undefined) expect(end).toMatchObject({ code, message });
    expect([place.came.size, ...place.files(place.jobDirectory)]).toEqual([0]);
    expect(fs.existsSync(path.join(place.jobDirectory, 'plant'))).toBe(false);
  });

  it('asks what it skipped, which fails nothing, unless the transfer is stopped', async () => {
    const { place, rsyncIs, runs } = placeWith();
    place.put('11/a', 'a');
    fs.symlinkSync('nowhere', path.join(place.cluster, '11/dead'));
    const method = await place.lend();
    const listing = (does: string) => rsyncIs(`case "$*" in *--list-only*) ${does};; *) exec $RSYNC "$@";; esac`);
    listing("exec tr '\\0' x < /dev/zero");
    await place.fetch(place.transfer(), method, ['11/a', '11/dead']);
    expect([[...place.came.keys()], place.irregular.size]).toEqual([['11/a'], 0]);
    // A key that permits no links: what they lead to is unknown.
    listing('case "$*" in *--copy-links*) exit 12;; *) exec $RSYNC "$@";; esac');
    execFileSync('mkfifo', [path.join(place.cluster, '11/pipe')]);
    await place.fetch(place.transfer(), method, ['11/pipe', '11/dead']);
    expect([...place.irregular]).toEqual([['11/pipe', 'a named pipe']]);
    // A disk that fails shows no dead link.
    const fails = (reason: string) =>
      listing(`$RSYNC "$@"; code=$?; echo 'rsync: link_stat "11/x" failed: ${reason}' >&2; exit $code`);
    fails('Input/output error (5)');
    await place.fetch(place.transfer(), method, ['11/dead']);
    expect(place.irregular.has('11/dead')).toBe(false);
    // Nor where it prints more after that than is kept of an ordinary output.
    listing(
      `echo 'rsync: link_stat "11/x" failed: Input/output error (5)' >&2; printf 'no referent: %050d\\n' $(seq 200) >&2; exit 23`,
    );
    await place.fetch(place.transfer(), method, ['11/dead']);
    expect(place.irregular.has('11/dead')).toBe(false);
    fails('Too many levels of symbolic links (40)');
    await place.fetch(place.transfer(), method, ['11/dead']);
    expect(place.irregular.get('11/dead')).toBe('a link to a missing file');
    listing('sleep 100');
    const stop = new AbortController();
    const before = runs().length;
    const fetched = place.fetch(place.transfer(), method, ['11/dead'], { signal: stop.signal });
    fetched.catch(() => {});
    await until('the list to be asked for', () => runs().length === before + 2);
    stop.abort();
    await expect(fetched).rejects.toMatchObject({ code: 'aborted' });
  });

  it('whose output is a line without end is stopped, and whose host floods', async () => {
    const { place, rsyncIs } = placeWith();
    const method = await place.lend();
    for (const flood of ['yes "flood flood" >&2', 'exec cat /dev/urandom']) {
      place.hostIs(flood);
      await expect(place.fetch(place.transfer({ idleMs: 400 }), method, ['11/a'])).rejects.toThrow('cluster.example');
    }
    rsyncIs("exec tr '\\0' x < /dev/zero");
    await expect(place.fetch(place.transfer(), method, ['11/a'])).rejects.toMatchObject({
      code: 'unexpected-answer',
      message: 'a line of rsync has no end',
    });
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

describe('the list of rsync', needs('rsync'), () => {
  const list = async (place: SshPlace) =>
    place.transfer().list({ method: await place.lend(), signal: new AbortController().signal });

  it('has all regular files with their sizes, the number of links, and nothing else', async () => {
    const { place, rsyncIs } = placeWith();
    place.put('11/a', 'a');
    place.put('11/deep/two\nlines', Buffer.alloc(12_345));
    fs.symlinkSync('a', path.join(place.cluster, '11/link'));
    execFileSync('mkfifo', [path.join(place.cluster, '11/pipe')]);
    const whole = {
      files: [
        { name: '11/a', bytes: 1 },
        { name: '11/deep/two\nlines', bytes: 12_345 },
      ],
      links: 1,
    };
    expect(await list(place)).toEqual(whole);
    // A file that vanishes meanwhile.
    rsyncIs('$RSYNC "$@"; exit 24');
    expect(await list(place)).toEqual(whole);
    rsyncIs(`printf 'Welcome\\n-rw-r--r-- many 2026/11/26 10:00:00 two\\n'; exec $RSYNC "$@"`);
    await expect(list(place)).rejects.toMatchObject({
      code: 'unexpected-answer',
      message: 'rsync printed 2 lines that are no list of files',
    });
  });

  it('is none where rsync cannot read everything, or SSH fails', async () => {
    const { place, rsyncIs } = placeWith();
    rsyncIs('echo "rsync: change_dir failed" >&2; exit 23');
    await expect(list(place)).rejects.toMatchObject({
      code: 'unexpected-answer',
      message: 'rsync lists not all files of the job on cluster.example: rsync: change_dir failed',
    });
    rsyncIs('echo "ssh: no route" >&2; exit 23');
    await expect(list(place)).rejects.toMatchObject({ code: 'unreachable' });
  });
});
