/** One live file, with a source whose responses the test gives: what each poll requests, and what it leads to. */
import fs from 'node:fs';
import { expect, it, vi } from 'vitest';
import type { BytesRequest, LiveBytes, LiveSource } from '../../../src/agent/ports/live-source.ts';
import { JobtailError } from '../../../src/errors.ts';
import { keyText, type LiveFileKey } from '../../../src/job.ts';
import { JOB, ModelDisk, polledPlace, STDOUT } from '../../support/engine.ts';
import { responseOf, type Shown } from '../../support/live-response.ts';

const NAME = keyText(STDOUT);
const TEXT = 'a line\n';

function setUp(keys: readonly LiveFileKey[] = [STDOUT]) {
  /** What exists, by `keyText`. */
  const files = new Map<string, string | JobtailError>([[NAME, TEXT]]);
  const state = {
    shown: {} as Shown,
    showsOverlap: true,
    onRequest: () => {},
    releaseError: undefined as Error | undefined,
  };
  const counts = { given: 0, released: 0, downloads: 0, opened: 0 };
  let requests: BytesRequest[] = [];
  const firsts: boolean[] = [];
  const responseTo = ({ from }: BytesRequest, text: string): LiveBytes => {
    const { follows = 'nothing' } = state.shown;
    counts.given += 1;
    const shown = { sameness: text + (follows === 'nothing' ? '' : follows), ...state.shown, from, text };
    const release = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      counts.released += 1;
      if (state.releaseError !== undefined) throw state.releaseError;
    };
    return { ...responseOf(shown, () => (counts.downloads += 1)), release };
  };
  const source: LiveSource = {
    bytes: async (wanted, _, isFirst) => {
      requests.push(...wanted);
      firsts.push(isFirst);
      state.onRequest();
      const found = wanted.flatMap((request) => {
        const text = files.get(keyText(request));
        if (text === undefined) return [];
        return [[keyText(request), typeof text === 'string' ? responseTo(request, text) : text] as const];
      });
      return { files: new Map(found), refused: 1 };
    },
    overlapStart: ({ length }) => (state.showsOverlap ? 0 : length),
  };
  const disk = new ModelDisk();
  const open = disk.open.bind(disk);
  disk.open = (...args) => {
    counts.opened += 1;
    return open(...args);
  };
  const { engine, time } = polledPlace({ disk, source, keys });
  /** What a poll, `after` some milliseconds, requests, whether it opens a mirror, and its outcome or error. */
  const poll = async (after = 0, isFinal = false) => {
    time.now += after;
    requests = [];
    counts.opened = 0;
    const { outcomes, errors } = await engine.poll(isFinal);
    expect(counts.released).toBe(counts.given);
    expect(disk.openHandles).toBe(0);
    expect(outcomes.size + errors.size).toBe(keys.length);
    const outcome = outcomes.get(NAME) ?? errors.get(NAME)?.message;
    return { requests: requests.map(shownOf), isOpened: counts.opened > 0, outcome };
  };
  const mirror = () => fs.readFileSync(engine.mirror(STDOUT), 'utf8');
  return { files, state, counts, engine, time, disk, poll, mirror, firsts, requested: () => requests };
}

const shownOf = ({ from, known, isThorough, sameAs }: BytesRequest) => ({ from, known, isThorough, sameAs });
const asks = (known: number, sameAs?: string, isThorough = false) => ({ from: 0, known, isThorough, sameAs });

it('a quiet file repeats its last request, and stays unopened as long as the response is the same', async () => {
  const { state, poll, engine } = setUp();
  const transactions = vi.spyOn(engine.store, 'transaction');
  expect(await poll()).toEqual({ requests: [asks(0)], isOpened: true, outcome: 'current' });
  // It grew, so it was not quiet.
  expect(await poll()).toEqual({ requests: [asks(7)], isOpened: true, outcome: 'current' });
  transactions.mockClear();
  const quiet = { requests: [asks(7, TEXT)], isOpened: false, outcome: 'current' };
  expect([await poll(), await poll()]).toEqual([quiet, quiet]);
  expect(transactions).not.toHaveBeenCalled();
  // A last poll compares it anyway, and the next one does not trust that response.
  expect(await poll(0, true)).toEqual({ requests: [asks(7, undefined, true)], isOpened: true, outcome: 'current' });
  expect(await poll()).toEqual({ ...quiet, requests: [asks(7)], isOpened: true });
  expect(await poll()).toEqual(quiet);
  // Another path is noted.
  state.shown = { relativePath: '/moved.txt' };
  expect(await poll()).toEqual({ ...quiet, isOpened: true });
  expect(engine.store.liveFiles.get(JOB, STDOUT)?.relativePath).toBe('/moved.txt');
  expect(await poll()).toEqual({ ...quiet, requests: [asks(7)], isOpened: true });
  // A rotation that another agent began is finished.
  const [row] = engine.store.liveFiles.ofJob(JOB);
  if (row !== undefined) engine.store.liveFiles.save({ ...row, rotation: 'copying' });
  expect(await poll()).toMatchObject({ isOpened: true });
  expect(engine.store.liveFiles.get(JOB, STDOUT)).toMatchObject({ generation: 2, rotation: null });
});

it('a file that differs at each request is requested four times, of which only the first may fail the poll', async () => {
  const { files, state, firsts, engine } = setUp();
  await engine.poll();
  fs.writeFileSync(engine.mirror(STDOUT), 'another');
  let same = 7;
  state.onRequest = () => {
    same -= 1;
    files.set(NAME, `${'another'.slice(0, same)}X`);
  };
  const { outcomes, refused } = await engine.poll();
  expect([outcomes.get(NAME), refused, firsts.slice(1)]).toEqual(['unclear', 4, [true, false, false, false]]);
});

it('a file that hides its end is opened as soon as raw bytes may be compared, and quiet until then', async () => {
  const { files, state, poll, mirror, requested } = setUp();
  state.shown = { follows: 'hidden', raw: `${TEXT}more\n`, listedName: '/listed.txt' };
  expect(await poll()).toMatchObject({ outcome: 'current' });
  expect(mirror()).toBe(`${TEXT}more\n`);
  files.set(NAME, mirror());
  state.shown = { isEndCertain: false };
  expect(await poll()).toMatchObject({ isOpened: true, outcome: 'current' });
  expect(requested()).toMatchObject([{ listedName: '/listed.txt' }]);
  expect(await poll()).toEqual({ requests: [asks(12, mirror())], isOpened: false, outcome: 'current' });
  expect(await poll(60_000)).toEqual({ requests: [asks(12)], isOpened: true, outcome: 'current' });
});

it('a file without a measure of sameness, or that does not exist, is opened only if that is needed', async () => {
  const { files, state, poll } = setUp();
  state.shown = { sameness: undefined };
  for (let polls = 0; polls < 3; polls += 1) expect(await poll()).toMatchObject({ isOpened: true, outcome: 'current' });
  files.delete(NAME);
  expect(await poll()).toEqual({ requests: [asks(7)], isOpened: true, outcome: 'absent' });
  expect(await poll()).toEqual({ requests: [asks(7)], isOpened: false, outcome: 'absent' });
  files.set(NAME, TEXT);
  expect(await poll()).toEqual({ requests: [asks(7)], isOpened: true, outcome: 'current' });
});

const grow = (mirror: string) => fs.appendFileSync(mirror, 'junk');
const empty = (mirror: string) => fs.truncateSync(mirror);

it.each<[string, string, (mirror: string) => void, ReturnType<typeof asks>[]]>([
  ['is empty and grows', '', grow, [asks(0, ''), asks(0, undefined, true), asks(0)]],
  ['grows', TEXT, grow, [asks(7, TEXT), asks(7)]],
  ['is emptied', TEXT, empty, [asks(7, TEXT), asks(0)]],
  ['has only bytes that no text shows and is emptied', TEXT, empty, [{ ...asks(0, TEXT), from: 7 }, asks(0)]],
])('a mirror that %s during a quiet request is compared with a fresh response', async (_, text, change, wanted) => {
  const { files, state, poll, engine, mirror } = setUp();
  state.showsOverlap = wanted[0]?.from === 0;
  state.shown = { raw: text };
  files.set(NAME, text);
  for (let polls = 0; polls < 2; polls += 1) await poll();
  files.set(NAME, `${text}more\n`);
  state.onRequest = () => {
    state.onRequest = () => {};
    change(engine.mirror(STDOUT));
  };
  expect((await poll()).requests).toEqual(wanted);
  for (let polls = 0; polls < 2; polls += 1) await poll();
  expect(mirror()).toBe(`${text}more\n`);
});

it('a failing file is requested after pauses of half an hour at most, and at once by a complete pass', async () => {
  const { files, time, poll, requested, disk } = setUp();
  const broken = new JobtailError('fault', 'it is broken');
  files.set(NAME, broken);
  // A complete pass sets no pause.
  expect(await poll(0, true)).toMatchObject({ requests: [{}], outcome: 'it is broken' });
  const at: number[] = [];
  for (let minute = 0; minute < 200; minute += 1, time.now += 60_000) {
    expect((await poll()).outcome).toBe('it is broken');
    if (requested().length > 0) at.push(minute);
  }
  const pauses = at.slice(1).map((minute, index) => minute - (at[index] ?? 0));
  expect([at[0], ...pauses.slice(-3)]).toEqual([0, 30, 30, 30]);
  files.set(NAME, TEXT);
  expect((await poll()).requests).toEqual([]);
  expect(await poll(0, true)).toMatchObject({ outcome: 'current' });
  // That ends the pause.
  expect(await poll()).toMatchObject({ requests: [{}], outcome: 'current' });
  // So does a response that only this machine fails to store: the first pause comes again.
  const requestsAfter = async (ms: number, there: string | JobtailError) => {
    files.set(NAME, there);
    return (await poll(ms)).requests.length;
  };
  expect([await requestsAfter(0, broken), await requestsAfter(1_000, broken)]).toEqual([1, 1]);
  disk.beforeStep = () => Promise.reject(Object.assign(new Error('EIO: write'), { code: 'EIO', syscall: 'write' }));
  expect([await requestsAfter(1_999, broken), await requestsAfter(1, `${TEXT}more\n`)]).toEqual([0, 1]);
  disk.beforeStep = async () => {};
  expect([await requestsAfter(0, broken), await requestsAfter(1_000, broken)]).toEqual([1, 1]);
});

it('a file whose polls leave work undone for a minute is stuck, for the reason of its last request', async () => {
  const { files, state, poll, mirror } = setUp();
  /** The outcomes of polls, each half a minute after the last one. */
  const outcomes = async (shown: Shown, polls: number) => {
    state.shown = shown;
    const found: (string | undefined)[] = [];
    for (let count = 0; count < polls; count += 1) found.push((await poll(30_000)).outcome);
    return found;
  };
  const hidden: Shown = { follows: 'hidden', raw: { reason: 'it is refused' } };
  const stuck =
    'the mirror ends at byte 7: the service does not show what follows, and there are no raw bytes: it is refused';
  expect(await outcomes(hidden, 3)).toEqual(['raw-unavailable', 'raw-unavailable', stuck]);
  expect(await outcomes({}, 1)).toEqual(['current']);
  expect(await outcomes(hidden, 2)).toEqual(['raw-unavailable', 'raw-unavailable']);
  // A request that fails shows no progress.
  files.set(NAME, new JobtailError('fault', 'it is broken'));
  expect(await outcomes(hidden, 1)).toEqual(['it is broken']);
  files.set(NAME, TEXT);
  expect(await outcomes(hidden, 1)).toEqual([stuck]);
  expect(await outcomes({}, 1)).toEqual(['current']);
  const unclear = 'the mirror ends at byte 7: responses from different offsets contradict each other';
  expect(await outcomes({ follows: 'unclear', raw: TEXT }, 3)).toEqual(['unclear', 'unclear', unclear]);
  // Raw bytes that came come again after a pause.
  expect(await outcomes({ follows: 'hidden', raw: TEXT }, 5)).toEqual(Array(5).fill('raw-unavailable'));
  expect(mirror()).toBe(TEXT);
});

it('a response that cannot be released fails its file alone, and keeps neither a response nor a mirror', async () => {
  const stderr: LiveFileKey = { ...STDOUT, file: 'stderr' };
  const { state, counts, poll, engine } = setUp([STDOUT, stderr]);
  state.releaseError = new Error('it cannot be released');
  expect(await poll()).toMatchObject({ requests: [{}, {}], outcome: expect.stringContaining('it cannot be released') });
  expect(counts.released).toBe(1);
  const rows = engine.store.liveFiles.ofJob(JOB).map(({ file, error }) => [file, error?.code]);
  expect(rows).toEqual([
    ['stderr', undefined],
    ['stdout', 'internal'],
  ]);
});

it('a stop ends a poll before its first request, and before the response is appended', async () => {
  const { state, counts, engine, requested } = setUp();
  const stop = new AbortController();
  state.onRequest = () => stop.abort();
  await expect(engine.poll(false, stop.signal)).rejects.toMatchObject({ code: 'aborted' });
  expect(counts).toMatchObject({ given: 1, released: 1 });
  expect(fs.statSync(engine.mirror(STDOUT)).size).toBe(0);
  await expect(engine.poll(false, stop.signal)).rejects.toMatchObject({ code: 'aborted' });
  expect(requested()).toHaveLength(1);
});

it('a poll whose bytes cannot be committed fails as a whole, and before a download without that', async () => {
  const stderr: LiveFileKey = { ...STDOUT, file: 'stderr' };
  const { files, state, counts, poll, engine } = setUp([STDOUT, stderr]);
  files.set(keyText(stderr), TEXT);
  await poll();
  for (const [name] of files) files.set(name, `${TEXT}more\n`);
  state.shown = { follows: 'hidden', raw: `${TEXT}more\nand more\n` };
  const { liveFiles } = engine.store;
  const write = liveFiles.save.bind(liveFiles);
  const save = vi.spyOn(liveFiles, 'save').mockImplementation((row) => {
    if (row.file === 'stdout') throw new JobtailError('store', 'the state cannot be written');
    write(row);
  });
  await expect(engine.poll()).rejects.toMatchObject({ code: 'store' });
  state.shown = {};
  await expect(engine.poll()).rejects.toMatchObject({ code: 'store' });
  expect(counts).toMatchObject({ downloads: 0, released: counts.given });
  save.mockRestore();
  // One file is requested again, while the other waits for its download.
  fs.appendFileSync(engine.mirror(stderr), 'junk');
  state.shown = { follows: 'hidden', raw: `${TEXT}more\nand more\n` };
  expect(await poll()).toMatchObject({ requests: [{}, {}, {}], outcome: 'current' });
});
