/** Ways of direct transfers, and the steps of cases of what they bring. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { expect, vi } from 'vitest';
import type { ClusterList, DirectRequest } from '../../src/agent/ports/transfer.ts';
import { connectionFailure } from '../../src/direct/failures.ts';
import { shareTransfer } from '../../src/direct/share.ts';
import { asJobtailError, JobtailError } from '../../src/errors.ts';
import { expectCases, stepOf } from '../support/errors.ts';
import { type NamedFile, SHARED, TransferPlace } from './place.ts';

type Request = Partial<DirectRequest<NamedFile>>;
type Fetch = (names: readonly string[], more?: Request & { readonly idleMs?: number }) => Promise<void>;
type By = (place: TransferPlace) => Promise<readonly [Fetch, list: () => Promise<ClusterList>]>;

const { signal } = new AbortController();
/** What rsync says after ssh has ended. */
const CLOSED =
  'rsync: connection unexpectedly closed (0 bytes) [Receiver]\nrsync error: unexplained error (code 255)\n';

export const byShare: By = async (place) => {
  const transfer = shareTransfer({ roots: { '/scratch': path.join(place.directory, 'cluster') }, guarded: [] });
  return [(...of) => place.fetch(transfer, SHARED, ...of), () => transfer.list({ method: SHARED, signal })];
};

const bySsh = async (place: TransferPlace, command: string) => {
  place.hostIs(`exec ${command}`);
  const method = await place.lend();
  const fetch: Fetch = (names, { idleMs = 60_000, ...more } = {}) =>
    place.fetch(place.transfer({ idleMs }), method, names, more);
  return [fetch, () => place.transfer().list({ method, signal })] as const;
};

/** A key that permits nothing else; a script runs the command in the place of SSH. */
export const byOnlyRsync: By = (place) => bySsh(place, place.onlyRsync());

/** A host that is this machine, with a line for each run. */
export const byRsync: By = async (place) => {
  const by = await bySsh(place, 'sh -c "$SSH_ORIGINAL_COMMAND"');
  place.rsyncIs(`echo "$@" >> ${runsOf(place)}`, 'exec $RSYNC "$@"');
  return by;
};

const runsOf = (place: TransferPlace) => path.join(place.directory, 'runs');
const runs = (place: TransferPlace) =>
  fs.existsSync(runsOf(place)) ? fs.readFileSync(runsOf(place), 'utf8').trimEnd().split('\n') : [];
const onFiles = async () => {
  throw new JobtailError('local-io', 'nobody takes them');
};

function errorLines(thrown: unknown): string[] {
  if (thrown === undefined) return ['no failure of the connection'];
  const { code, message, hint } = asJobtailError(thrown);
  return [`${code}: ${message}${hint === undefined ? '' : ` (${hint})`}`];
}

/** What a request brought, in lines. */
async function fetched(
  place: TransferPlace,
  fetch: Fetch,
  [names, how = {}, isRefused]: Parameters<Fetch> & [...unknown[]],
) {
  for (const of of [place.came, place.irregular]) of.clear();
  for (const of of [place.tooLarge, place.progress, place.batches]) of.splice(0);
  const reachedBefore = place.reached;
  const before = place.files(place.results);
  fs.rmSync(runsOf(place), { force: true });
  const lines: string[] = [];
  await fetch(names, { ...how, ...(isRefused ? { onFiles } : {}) }).catch((thrown) =>
    lines.push(...errorLines(thrown)),
  );
  const came = [...place.came].sort().map(([name, bytes]) => {
    const there = path.join(place.cluster, name);
    // An absolute link is a path of the cluster.
    if (fs.existsSync(there)) expect(bytes.equals(fs.readFileSync(there)), name).toBe(true);
    return `${JSON.stringify(name)} of ${bytes.length} bytes`;
  });
  if (came.length > 0) lines.push(`came: ${came.join(', ')}`);
  for (const [name, what] of [...place.irregular].sort()) lines.push(`${JSON.stringify(name)} is ${what}`);
  for (const name of [...place.tooLarge].sort()) lines.push(`${JSON.stringify(name)} is too large`);
  // Files that still grew have names of rsync.
  const left = place.files(place.arrival).filter((name) => !/\.\w{6}$/.test(name));
  for (const name of left) lines.push(`left: ${name}`);
  expect(place.progress).toEqual([...place.progress].sort((a, b) => a - b));
  expect(place.files(place.results).filter((name) => !place.came.has(name) && !before.includes(name))).toEqual([]);
  expect([place.files(place.runtime), fs.readdirSync(place.jobDirectory).filter((name) => name !== '.direct')]).toEqual(
    [[], ['results']],
  );
  const { length } = runs(place);
  const reached = place.reached - reachedBefore;
  if (length > 0) lines.push(`${length} runs, ${reached} of them reached the files`);
  else if (place.came.size > 0) lines.push(`${place.progress.at(-1)} bytes reported, reached ${reached} time`);
  // What breaks off depends on which process of rsync notices it first.
  return lines.map((line) => line.replace(/(broke off: rsync: ).*( \(what)/, '$1...$2'));
}

const SECRETS = ['token', 'agent.db', 'passwd', 'hostname', 'environ', '11/a', '501/11/a', 'state/agent.db'];

/** `~` is the directory of the place; other names of files are those of the cluster. */
function stepsOf(place: TransferPlace, [fetch, list]: Awaited<ReturnType<By>>) {
  const absolute = (file: string) => file.replace(/^~/, place.directory);
  const at = (name: string) => (name.startsWith('~') ? absolute(name) : path.join(place.cluster, name));
  const script = (does: string) =>
    does.replaceAll('ARRIVAL', path.join(place.arrival, 'rsync')).replaceAll('RUNS', runsOf(place));
  const write = (file: string, content: string | Buffer) => {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
  };
  /** What shares bring of secrets and of what lies beside them: each line once. */
  const secretsBy = async (guarded: readonly string[], shares: readonly (readonly [root: object, base: string])[]) => {
    const lines = new Set<string>();
    for (const [roots, base] of shares) {
      const of = Object.entries(roots).map(([there, here]) => [there, absolute(here)]);
      const transfer = shareTransfer({ roots: Object.fromEntries(of), guarded: guarded.map(absolute) });
      const method = { ...SHARED, sharedBasepath: absolute(base) };
      const found = await fetched(place, (...each) => place.fetch(transfer, method, ...each), [SECRETS]);
      for (const line of found)
        lines.add(line.replace(`share ${method.sharedBasepath},`, 'share IT,').replaceAll(place.directory, '~'));
    }
    return [...lines];
  };
  return {
    put: (...names: string[]) => {
      for (const name of names) place.put(name, `content of ${name}`);
    },
    random: (name: string, bytes: number) => place.put(name, randomBytes(bytes)),
    secrets: (...files: string[]) => {
      for (const file of files) write(absolute(file), 'a secret');
    },
    link: (name: string, to: string, encoding?: 'latin1') =>
      fs.symlinkSync(Buffer.from(absolute(to), encoding), at(name)),
    pipe: (name: string) => void execFileSync('mkfifo', [at(name)]),
    /** Its name is not UTF-8. */
    latin1: (name: string) => fs.writeFileSync(Buffer.from(at(name), 'latin1'), 'x'),
    left: (name: string, bytes = 4) => write(path.join(place.arrival, name), Buffer.alloc(bytes)),
    present: (name: string, bytes: number) => write(path.join(place.results, name), Buffer.alloc(bytes)),
    host: (does: string) => place.hostIs(does),
    rsync: (does: string) => place.rsyncIs(`echo "$@" >> ${runsOf(place)}`, script(does)),
    listing: (does: string) => place.rsyncIs(`case "$*" in *--list-only*) ${does};; *) exec $RSYNC "$@";; esac`),
    cuts: (...of: Parameters<TransferPlace['hostCuts']>) => place.hostCuts(...of),
    swaps: (from: string, to: string) => place.hostSwaps(from, Buffer.from(to).toString('latin1')),
    fetch: (...of: Parameters<Fetch>) => fetched(place, fetch, of),
    many: (count: number) => fetched(place, fetch, [Array.from({ length: count }, (_, number) => `11/f${number}`)]),
    // Another rsync may refuse it with other words, and what can be resumed may be left.
    hostile: async (...of: Parameters<Fetch>) =>
      (await fetched(place, fetch, of)).flatMap((line) =>
        /^(?:came|left): (?!.*\.partial\/)/.test(line) ? line : /^[\w-]+: .* \(/.test(line) ? 'an error' : [],
      ),
    progress: () => [JSON.stringify([...new Set(place.progress)])],
    arguments: () => runs(place).map((run) => run.replace(/'.*\/config'/, 'CONFIG').replaceAll(place.directory, '~')),
    list: () =>
      list().then(
        ({ files, links }) => [...files.map((file) => JSON.stringify(file)).sort(), `${links} links`],
        (thrown: unknown) => [`${asJobtailError(thrown).code}: ${asJobtailError(thrown).message}`],
      ),
    shares: (guarded: readonly string[], roots: object, ...bases: string[]) =>
      secretsBy(
        guarded,
        bases.map((base) => [roots, base]),
      ),
    roots: (guarded: readonly string[], ...roots: string[]) =>
      secretsBy(
        guarded,
        roots.map((root) => [{ '/scratch': root }, '/scratch']),
      ),
    /** Calls on files of this name fail so. */
    failing: (call: 'lstat' | 'read', name: string, code: string) => {
      const error = Object.assign(new Error(`${code}: words, ${call}`), { code, syscall: call });
      const { lstat, open } = fs.promises;
      const isOf = (file: unknown) => path.basename(String(file)) === name;
      if (call === 'lstat')
        vi.spyOn(fs.promises, call).mockImplementation(async (file) =>
          isOf(file) ? Promise.reject(error) : lstat(file),
        );
      else
        vi.spyOn(fs.promises, 'open').mockImplementation(async (...of) => {
          const handle = await open(...of);
          if (isOf(of[0])) handle.read = () => Promise.reject(error);
          return handle;
        });
    },
    ssh: (...says: string[]) => [
      ...new Set(says.flatMap((words) => errorLines(connectionFailure(`${words}\n${CLOSED}`, 'h')))),
    ],
  };
}

/** Each request for files brings what is written in the file. */
export async function expectTransfers(file: string, by: By): Promise<void> {
  await expectCases(path.join(import.meta.dirname, file), async (written) => {
    const place = new TransferPlace();
    const steps = stepsOf(place, await by(place));
    const lines: string[] = [];
    for (const step of written.split(' | ')) {
      const result = await stepOf(step, steps);
      if (Array.isArray(result)) lines.push(...(result as string[]));
    }
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
    return lines;
  });
}
