/** What direct transfers bring of what is there: each of them as in transfers.txt, by the real rsync as in rsync.txt too. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, type TestOptions, vi } from 'vitest';
import type { DirectRequest } from '../../src/agent/ports/transfer.ts';
import { shareTransfer } from '../../src/direct/share.ts';
import { asJobtailError, JobtailError } from '../../src/errors.ts';
import { expectCases, stepOf } from '../support/errors.ts';
import { needs } from '../support/needs.ts';
import { SshPlace } from './ssh-place.ts';
import { type NamedFile, SHARED } from './transfers.ts';

type Request = Partial<DirectRequest<NamedFile>>;
type Fetch = (names: readonly string[], more?: Request & { readonly idleMs?: number }) => Promise<void>;

async function byShare(place: SshPlace): Promise<Fetch> {
  const transfer = shareTransfer({ roots: { '/scratch': path.join(place.directory, 'cluster') }, guarded: [] });
  return (...of) => place.fetch(transfer, SHARED, ...of);
}

/** A key that permits nothing else; a script runs the command in the place of SSH. */
async function byOnlyRsync(place: SshPlace): Promise<Fetch> {
  place.hostIs(`exec ${place.onlyRsync()}`);
  const method = await place.lend();
  return (...of) => place.fetch(place.transfer(), method, ...of);
}

/** A host that is this machine, with a line for each run. */
async function byRsync(place: SshPlace): Promise<Fetch> {
  place.hostIs('exec sh -c "$SSH_ORIGINAL_COMMAND"');
  place.rsyncIs(`echo x >> ${runsOf(place)}`, 'exec $RSYNC "$@"');
  const method = await place.lend();
  return (names, { idleMs = 60_000, ...more } = {}) => place.fetch(place.transfer({ idleMs }), method, names, more);
}

const runsOf = (place: SshPlace) => path.join(place.directory, 'runs');
const onFiles = async () => {
  throw new JobtailError('local-io', 'nobody takes them');
};

/** What a request brought, in lines. */
async function fetched(
  place: SshPlace,
  fetch: Fetch,
  [names, how = {}, isRefused]: Parameters<Fetch> & [...unknown[]],
) {
  for (const of of [place.came, place.irregular]) of.clear();
  for (const of of [place.tooLarge, place.progress, place.batches]) of.splice(0);
  const reachedBefore = place.reached;
  fs.rmSync(runsOf(place), { force: true });
  const lines: string[] = [];
  await fetch(names, { ...how, ...(isRefused ? { onFiles } : {}) }).catch((thrown: unknown) => {
    const { code, message, hint } = asJobtailError(thrown);
    lines.push(`${code}: ${message}${hint === undefined ? '' : ` (${hint})`}`);
  });
  const came = [...place.came].sort().map(([name, bytes]) => {
    expect(bytes.equals(fs.readFileSync(path.join(place.cluster, name))), name).toBe(true);
    return `${JSON.stringify(name)} of ${bytes.length} bytes`;
  });
  if (came.length > 0) lines.push(`came: ${came.join(', ')}`);
  for (const [name, what] of [...place.irregular].sort()) lines.push(`${JSON.stringify(name)} is ${what}`);
  for (const name of [...place.tooLarge].sort()) lines.push(`${JSON.stringify(name)} is too large`);
  // Files that still grew have names of rsync.
  const left = place.files(place.arrival).filter((name) => !/\.\w{6}$/.test(name));
  for (const name of left) lines.push(`left: ${name}`);
  expect(place.progress).toEqual([...place.progress].sort((a, b) => a - b));
  expect(place.files(place.results).filter((name) => !place.came.has(name))).toEqual([]);
  expect([place.files(place.runtime), fs.readdirSync(place.jobDirectory).sort()]).toEqual([[], ['.direct', 'results']]);
  const runs = fs.existsSync(runsOf(place)) ? fs.readFileSync(runsOf(place)).length / 2 : 0;
  const reached = place.reached - reachedBefore;
  if (runs > 0) lines.push(`${runs} runs, ${reached} of them reached the files`);
  else if (place.came.size > 0) lines.push(`${place.progress.at(-1)} bytes reported, reached ${reached} time`);
  // What breaks off depends on which process of rsync notices it first.
  return lines.map((line) => line.replace(/(broke off: rsync: ).*( \(what)/, '$1...$2'));
}

function stepsOf(place: SshPlace, fetch: Fetch) {
  const at = (name: string) => path.join(place.cluster, name);
  return {
    put: (...names: string[]) => {
      for (const name of names) place.put(name, `content of ${name}`);
    },
    random: (name: string, bytes: number) => place.put(name, randomBytes(bytes)),
    link: (name: string, to: string) => fs.symlinkSync(to, at(name)),
    pipe: (name: string) => void execFileSync('mkfifo', [at(name)]),
    left: (name: string) => {
      const file = path.join(place.arrival, name);
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, 'left');
    },
    rsync: (does: string) =>
      place.rsyncIs(`echo x >> ${runsOf(place)}`, does.replace('ARRIVAL', path.join(place.arrival, 'rsync'))),
    listing: (does: string) => place.rsyncIs(`case "$*" in *--list-only*) ${does};; *) exec $RSYNC "$@";; esac`),
    cuts: (...of: Parameters<SshPlace['hostCuts']>) => place.hostCuts(...of),
    swaps: (from: string, to: string) => place.hostSwaps(from, Buffer.from(to).toString('latin1')),
    fetch: (...of: Parameters<Fetch>) => fetched(place, fetch, of),
    // Another rsync may refuse it with other words.
    hostile: async (...of: Parameters<Fetch>) =>
      (await fetched(place, fetch, of)).filter((line) => /^(?:came|left): /.test(line)),
    list: async () => {
      const method = await place.lend();
      const listed = place.transfer().list({ method, signal: new AbortController().signal });
      return await listed.then(
        ({ files, links }) => [...files.map((file) => JSON.stringify(file)), `${links} links`],
        (thrown: unknown) => [`${asJobtailError(thrown).code}: ${asJobtailError(thrown).message}`],
      );
    },
  };
}

const EACH: [name: string, by: typeof byShare, file: string, TestOptions][] = [
  ['a mounted share', byShare, 'transfers.txt', {}],
  ['an rsync that may do nothing else', byOnlyRsync, 'transfers.txt', needs('rsync')],
];

for (const [name, by, file, options] of [...EACH, ['rsync', byRsync, 'rsync.txt', needs('rsync')] as const])
  it(`by ${name}, each request for files brings what is written`, options, async () => {
    await expectCases(path.join(import.meta.dirname, file), async (written) => {
      const place = new SshPlace();
      const steps = stepsOf(place, await by(place));
      const lines: string[] = [];
      for (const step of written.split(' | ')) {
        const result = await stepOf(step, steps);
        if (Array.isArray(result)) lines.push(...(result as string[]));
      }
      vi.unstubAllEnvs();
      return lines;
    });
  });

for (const [name, by, , options] of EACH)
  it(
    `by ${name}, a request ends with what is thrown meanwhile, when it is stopped, and at a link in the place of its directory`,
    options,
    async () => {
      const place = new SshPlace();
      const fetch = await by(place);
      // rsync would find bytes that repeat in what came before the stop.
      place.put('11/large', randomBytes(8_000_000));
      const stop = new AbortController();
      const locked = () => {
        throw new JobtailError('store', 'the state is locked');
      };
      for (const [onBytes, code] of [
        [locked, 'store'],
        [() => stop.abort(), 'aborted'],
      ] as const) {
        const ended = fetch(['11/large'], { signal: stop.signal, bytesPerSecond: 1_000_000, onBytes });
        await expect(ended).rejects.toMatchObject({ code });
        expect(place.came.size).toBe(0);
      }
      const outside = path.join(place.directory, 'outside');
      fs.mkdirSync(outside);
      fs.rmSync(place.arrival, { recursive: true });
      fs.symlinkSync(outside, place.arrival);
      await expect(fetch(['11/large'])).rejects.toMatchObject({ code: 'local-io' });
      expect(fs.readdirSync(outside)).toEqual([]);
    },
  );
