/** A complete verification: what the cluster lists beside what the service lists. */
import fs from 'node:fs';
import { expect, it, vi } from 'vitest';
import { isHere, type Verified, verifyJob } from '../../../src/agent/pass/verification.ts';
import type { PartRequest } from '../../../src/agent/ports/server.ts';
import type { ClusterList } from '../../../src/agent/ports/transfer.ts';
import { JobtailError, type NoFile } from '../../../src/errors.ts';
import type { ResultRow } from '../../../src/store/rows.ts';
import { MemoryContent } from '../../support/model-remote.ts';
import { openFilesIn } from '../../support/temp-directory.ts';
import { directBy, JOB, ModelTransfer, ResultsPlace } from '../results/place.ts';

/** `clusterFiles`: what the cluster lists; without them, it is not asked. */
async function verified(place: ResultsPlace, clusterFiles?: ClusterList['files']): Promise<Verified[]> {
  const { mirror: mirrorDirectory, store, remote, results } = place;
  const { signal } = new AbortController();
  const list = vi.spyOn(results, 'listCluster').mockResolvedValue({ files: clusterFiles ?? [], links: 3 });
  const options = { mirrorDirectory, store, remote, results, isComplete: clusterFiles !== undefined, signal };
  const reported: Verified[] = [];
  const hide = (name: string) => `hidden ${name}`;
  const found = await verifyJob(JOB, { ...options, hide, onVerified: (one) => reported.push(one) });
  expect(found).toEqual({ files: reported, cluster: clusterFiles ? { files: clusterFiles.length, links: 3 } : null });
  expect(list.mock.calls).toEqual(clusterFiles ? [[JOB, remote, signal]] : []);
  list.mockRestore();
  return reported.map(({ name, proof }) => ({ name: /^hidden (.*)/.exec(name)?.[1] ?? 'not hidden', proof }));
}

async function notEqual(place: ResultsPlace, files: ClusterList['files']): Promise<string[]> {
  // No job here has a task.
  const found = (await verified(place, files)).filter(({ name }) => name !== 'live files');
  return found.flatMap(({ name, proof }) =>
    proof.outcome === 'equal' ? [] : [`${name}: ${'reason' in proof ? proof.reason : proof.outcome}`],
  );
}

it('a file of the cluster is known by its path, a live file also by the end of it; another size is named', async () => {
  const place = new ResultsPlace();
  place.remote.set('/11/a.dat', 'four');
  await place.sync(true);
  // Nothing listed can be the source of an empty mirror.
  place.live('stdout', '', { relativePath: '/out/stdout.txt' });
  const found = [
    { name: '11/a.dat', bytes: 4 },
    { name: '11/out/stdout.txt', bytes: 0 },
  ];
  expect(await notEqual(place, found)).toEqual([]);
  expect(await notEqual(place, [...found, { name: '11/b/a.dat', bytes: 4 }])).toEqual([
    '/11/b/a.dat: the service does not list it; the cluster does (4 B)',
  ]);
  const others = [
    { name: '11/a.dat', bytes: 5 },
    { name: '11/out/stdout.txt', bytes: 6 },
  ];
  const unproven = (await verified(place, others)).flatMap(({ proof }) =>
    proof.outcome === 'unproven' ? proof.bytes : [],
  );
  expect(unproven).toEqual([4, 0]);
  expect(await notEqual(place, others)).toEqual([
    '/11/a.dat: the cluster lists it with 5 bytes',
    '/11/out/stdout.txt: the cluster lists it with 6 bytes',
  ]);
  // What the service lists is missing once.
  place.remote.set('/11/new', 'new');
  expect(await notEqual(place, [...found, { name: '11/new', bytes: 3 }])).toEqual(['/11/new: never fetched']);
});

it('what the service failed to send is compared by SSH only, also where SSH does not bring it', async () => {
  const place = new ResultsPlace();
  const transfer = new ModelTransfer(place);
  place.restarted(directBy(place, transfer, 'auto'));
  transfer.contents.set('/11/large', 'large');
  place.remote.files.set('/11/large', new JobtailError('timeout', 'it sends nothing'));
  await place.sync(true);
  expect(place.row('/11/large')).toMatchObject({ state: 'synced', hangs: 1 });
  place.remote.downloads.length = 0;
  expect(await notEqual(place, [])).toEqual([]);
  expect(openFilesIn(place.mirror)).toBe(0);
  transfer.contents.set('/11/large', 'larger');
  expect(await notEqual(place, [])).toEqual(['/11/large: different']);
  transfer.failure = new JobtailError('unreachable', 'h is away');
  transfer.passesOver.add('/11/large');
  expect(await notEqual(place, [])).toEqual(['/11/large: only a direct transfer brings it, and none did: h is away']);
  expect(place.remote.downloads).toEqual([]);
});

it('a result that the service lists no more is gone, unless its copy has another content than it had', async () => {
  const place = new ResultsPlace();
  place.remote.set('/11/a', 'a');
  await place.sync(true);
  place.remote.files.clear();
  expect(await notEqual(place, [])).toEqual(['/11/a: the service lists it no more']);
  fs.writeFileSync(place.path('11', 'a'), 'b');
  expect(await notEqual(place, [])).toEqual(['/11/a: the service has no such file']);
  fs.rmSync(place.path('11', 'a'));
  expect(await notEqual(place, [])).toEqual([`/11/a: ${place.path('11', 'a')} is missing`]);
});

it('a result that became a directory, or a link that leads to no file, is gone: it says what is there', async () => {
  const place = new ResultsPlace();
  place.remote.set('/11/a', 'a');
  place.remote.set('/11/d/x', 'x');
  await place.sync(true);
  const refusal = (inPlace: NoFile) => new JobtailError('fault', `there is ${inPlace}`, { inPlace });
  // The words for a directory are also those for a disk that fails.
  for (const [inPlace, isGone] of [
    ['unclear', false],
    ['nothing', true],
  ] as const) {
    place.remote.files.set('/11/a', refusal(inPlace));
    const reason = `there is ${inPlace}`;
    expect(await notEqual(place, [])).toEqual([`/11/a: ${isGone ? 'there is no file any more: ' : ''}${reason}`]);
    expect((await verified(place)).map(isHere)).toEqual([false, isGone, true]);
  }
  // The reverse, after the former results were moved out of the way.
  place.remote.files.clear();
  for (const name of ['a', 'd']) fs.rmSync(place.path('11', name), { recursive: true });
  place.remote.set('/11/a/x', 'x');
  place.remote.set('/11/d', 'd');
  await place.sync(true);
  const replaced = 'the service lists it no more, and another result needs its path here';
  expect(await notEqual(place, [])).toEqual([`/11/a: ${replaced}`, `/11/d/x: ${replaced}`]);
});

it('a link that led to no file is asked for again, and is missing if it leads to one', async () => {
  const place = new ResultsPlace();
  place.remote.files.set('/11/link', new JobtailError('fault', 'refused', { inPlace: 'nothing' }));
  place.remote.files.set('/11/no', new JobtailError('fault', 'not for you'));
  await place.sync(true);
  await place.sync(true);
  expect(await notEqual(place, [])).toEqual([
    '/11/link: it is a link to a missing file',
    '/11/no: failed: not for you',
  ]);
  expect((await verified(place)).map(isHere)).toEqual([false, true, false]);
  place.remote.files.delete('/11/no');
  // It leads to a file by now, which nobody can read; or to a directory, which SSH has shown.
  const row = () => place.row('/11/link') as ResultRow;
  for (const inPlace of ['unclear', 'unreadable'] as const) {
    place.remote.files.set('/11/link', new JobtailError('fault', inPlace, { inPlace }));
    expect(await notEqual(place, [])).toEqual([`/11/link: ${inPlace}`]);
    place.store.results.saveAll([{ ...row(), reason: 'it is a link to a directory' }]);
    expect((await verified(place)).map(isHere)).toEqual([false, inPlace === 'unclear']);
    place.store.results.saveAll([{ ...row(), reason: 'it is a link to a missing file' }]);
  }
  place.remote.set('/11/link', 'a file');
  expect(await notEqual(place, [])).toEqual(['/11/link: it is a file by now']);
  // The service hung on it, as on a named pipe.
  place.store.results.saveAll([{ ...row(), hangs: 1 }]);
  place.remote.downloads.length = 0;
  expect(await notEqual(place, [])).toEqual(['/11/link: it is a link to a missing file']);
  expect(place.remote.downloads).toEqual([]);
  place.remote.files.clear();
  place.remote.downloads.length = 0;
  expect(await notEqual(place, [])).toEqual([]);
  expect(place.remote.downloads).toEqual([]);
});

it.each([
  ['unreachable', undefined],
  ['timeout', 'it fails'],
  ['http-status', 'it fails'],
] as const)('a result and a link that fail with %s are named, or end the verification', async (code, reason) => {
  const place = new ResultsPlace();
  place.remote.set('/11/a', 'a');
  place.remote.files.set('/11/link', new JobtailError('fault', 'refused', { inPlace: 'nothing' }));
  await place.sync(true);
  await place.sync(true);
  for (const [name, others] of [
    ['/11/a', ['/11/link: it is a link to a missing file']],
    ['/11/link', []],
  ] as const) {
    const before = place.remote.files.get(name);
    place.remote.files.set(name, new JobtailError(code, 'it fails'));
    const found = notEqual(place, []);
    if (reason === undefined) await expect(found).rejects.toMatchObject({ code });
    else expect(await found).toEqual([`${name}: ${reason}`, ...others]);
    if (before !== undefined) place.remote.files.set(name, before);
  }
});

it('what nothing brought is named with its reason', async () => {
  const place = new ResultsPlace();
  place.remote.set('/11/a', 'a');
  place.remote.set('/11/b', 'b');
  await place.sync(true);
  place.remote.reasons.set('/11/a', 'the service hands it out to nobody');
  expect(await notEqual(place, [{ name: '11/bad\uFFFD', bytes: 1 }])).toEqual([
    '/11/a: the service hands it out to nobody',
    '/11/bad\uFFFD: its name is not UTF-8, so nothing brings it: rename it on the cluster',
  ]);
  const order = { jobId: JOB, tasks: [], files: [], results: false, settleAfterMs: null } as const;
  place.store.jobs.watch({ ...order, source: 'command' }, place.now);
  place.remote.set('/11/new', 'new');
  expect(await notEqual(place, [])).toContain('/11/new: results of this job are off');
});

it('a result that is a link to a mirror is downloaded once with it', async () => {
  const place = new ResultsPlace();
  place.live('stdout', 'one\n', { relativePath: '/stdout.txt', listedName: '/7/stdout.txt' });
  place.remote.set('/7/stdout.txt', 'one\n');
  await place.sync(true);
  expect(place.row('/7/stdout.txt')).toMatchObject({ live: '9001/stdout' });
  place.remote.downloads.length = 0;
  expect(await notEqual(place, [])).toEqual([]);
  expect(place.remote.downloads).toEqual(['/7/stdout.txt']);
  // The mirror may be that of another listed file, and equal only the start of this one.
  place.store.capabilities.set('task-shift', '0');
  place.live('stdout', 'one\n', { relativePath: '/stdout.txt' });
  place.remote.set('/7/stdout.txt', 'one\ntwo\n');
  place.remote.set('/8/stdout.txt', 'one\n');
  expect(await notEqual(place, [])).toEqual(['/7/stdout.txt: different', '/8/stdout.txt: never fetched']);
  // Another link in its place is not read, and a file compared by itself.
  place.remote.files.delete('/8/stdout.txt');
  const copy = place.path('7', 'stdout.txt');
  fs.rmSync(copy);
  fs.symlinkSync('elsewhere', copy);
  expect(await notEqual(place, [])).toEqual([`/7/stdout.txt: ${copy} is not a regular file: it is not read`]);
  fs.rmSync(copy);
  fs.writeFileSync(copy, 'two\n');
  expect(await notEqual(place, [])).toEqual(['/7/stdout.txt: different']);
});

it('a live file that cannot be downloaded keeps no other from being compared', async () => {
  const place = new ResultsPlace();
  place.live('stdout', 'one\n', { relativePath: '/stdout.txt', listedName: '/9001/stdout.txt' });
  place.live('stderr', 'two\n', { relativePath: '/stderr.txt' });
  place.remote.files.set('/9001/stdout.txt', new JobtailError('http-status', 'status 500'));
  place.remote.set('/9001/stderr.txt', 'two\n');
  place.remote.set('/9001/out', 'result');
  expect(await notEqual(place, [])).toEqual(['task 9001 stdout: status 500', '/9001/out: never fetched']);
});

it('an empty mirror is compared: with the text of the service, and with its raw bytes', async () => {
  const place = new ResultsPlace();
  place.live('stdout', '', { relativePath: '/stdout.txt' });
  place.live('stderr', 'e', { relativePath: '/stderr.txt' });
  place.remote.set('/9001/stderr.txt', 'e');
  expect(await notEqual(place, [])).toEqual([]);
  const asked: PartRequest[] = [];
  place.remote.readParts = async (_, wanted) => {
    asked.push(...wanted);
    const content = () => new MemoryContent(Buffer.alloc(0));
    return { parts: wanted.map((part) => ({ ...part, relativePath: '/stdout.txt', content: content() })), refused: 0 };
  };
  place.remote.set('/9001/stdout.txt', 'x');
  expect((await verified(place)).map(isHere)).toEqual([false, true]);
  // Of a mirror with bytes, no text is requested, and of an empty one as little as possible.
  expect(asked).toEqual([{ taskId: '9001', file: 'stdout', offset: 0, enoughBytes: 1 }]);
});
