/**
 * What the agent does in a few lives of jobs, moment by moment: what it asks of the service, what it writes and flushes, what
 * it stores, logs and reports; and what it has stored in the end. A change of any of it is seen in printed/.
 */
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { resultsDirectory } from '../../src/agent/results/results.ts';
import type { JobId, LiveFileName, TaskId } from '../../src/job.ts';
import type { Store } from '../../src/store/store.ts';
import type { Settings } from './agent.ts';
import { type ResultKind, SimulatedJob } from './cluster.ts';
import { ended, JOB, MINUTE_MS, mendSecret, order, reload, verified } from './commands.ts';
import type { Fault } from './faults.ts';
import { inWorld } from './simulated-world.ts';
import { expectNoOthers, expectPrinted, play, rowsOf, type StepOf, Trace, treeOf } from './trace.ts';
import { World } from './world.ts';

const SETTINGS: Partial<Settings> = { exclude: ['*-4.dat'], maxFileBytes: 50_000, level: 'debug' };

const filesOf = (world: World) => jobOf(world).tasks[0]?.files as NonNullable<Job['tasks'][number]>['files'];
type Job = ReturnType<World['service']['job']>;
const jobOf = ({ service }: World, jobId = JOB): Job => service.job(jobId);

type Step = StepOf<World>;

const lines = (name: LiveFileName, count: number): Step => [
  `${name} grows by ${count} lines`,
  (world) => filesOf(world)[name].append(count),
];
const ANY_BYTES = Buffer.from([0xef, 0xbb, 0xbf, 0xff, 0xfe, 0x00, 0xe2, 0x82, 0x0a, 0xc3]);
const bytes = (name: LiveFileName, added: Buffer, minutes: number): Step => [
  `${name} grows by ${added.length} bytes of any kind`,
  (world) => {
    const { contents } = filesOf(world)[name];
    contents[contents.length - 1] = Buffer.concat([contents.at(-1) ?? Buffer.alloc(0), added]);
  },
  minutes,
];
const result = (name: string, text: string, kind: ResultKind = 'file'): Step => [
  `${name} is written (${kind})`,
  (world) => jobOf(world).result(name, kind, world.time.wallMs, Buffer.from(text)),
];
const to = (state: string, minutes = 0): Step => [
  `the job is ${state}`,
  (world) => jobOf(world).to(state, world.time.wallMs),
  minutes,
];
const fault = (what: Omit<Fault, 'share' | 'until'>, minutes: number): Step => [
  `the service: ${JSON.stringify(what)}`,
  ({ service, time }) => service.faults.push({ ...what, share: 1, until: time.passedMs + minutes * MINUTE_MS }),
  minutes,
];
const pause = (minutes: number): Step => [`${minutes} minutes`, () => {}, minutes];
const command = (what: string, work: (store: Store, now: number) => void, minutes = 1): Step => [
  what,
  ({ agent, time }) => {
    agent.store.transaction(() => work(agent.store, time.wallMs));
    agent.refresh();
  },
  minutes,
];
const settled: Step = [
  'until it is settled',
  async (world) => {
    const isOver = () => world.agent.store.jobs.get(JOB)?.state === 'settled';
    for (let minutes = 0; !isOver() && minutes < 90; minutes += 1) await world.time.pass(MINUTE_MS);
  },
];

/** Somebody changes a mirror. */
const edited = (what: string, name: LiveFileName, change: (file: string) => void, minutes = 0): Step => [
  what,
  ({ disk, mirrors }) => disk.aside(() => change(mirrorPath(mirrors, JOB, { taskId: '5010' as TaskId, file: name }))),
  minutes,
];
const changeByte = (file: string) => {
  const content = fs.readFileSync(file);
  content[20] = 0x21;
  fs.writeFileSync(file, content);
};
const OTHER = '502' as JobId;
const ending = (jobId: JobId): Step => [
  `${jobId} fails`,
  ({ service, time }) => service.job(jobId).end('Failed', time.wallMs),
  2,
];
/** A fault of one file without them would be one of sign-ins as well. */
const OF_RESULTS = { operations: ['DownloadFileFromCluster'] } as const;

const SCENARIOS: Readonly<Record<string, readonly Step[]>> = {
  'a job from its start to its end': [
    lines('stdout', 3),
    lines('progress', 1),
    result('/out/result-4.dat', 'left out'),
    pause(1),
    lines('stdout', 8),
    lines('stderr', 1),
    ['another task begins', (world) => jobOf(world).addTask()],
    result('/out/result-1.dat', 'first'),
    result('/out/large.dat', 'x'.repeat(60_000)),
    pause(6),
    ['the other task writes', (world) => jobOf(world).write(1, 'log', 2)],
    result('/out/result-1.dat', 'second'),
    to('Finished'),
    settled,
  ],
  'files that are truncated and rewritten': [
    ...[lines('stdout', 9), lines('progress', 3), lines('log', 400), pause(2)],
    ['stdout is truncated', (world) => filesOf(world).stdout.contents.push(Buffer.from('a few bytes\n')), 2],
    ['stdout is rewritten', (world) => filesOf(world).stdout.rewrite(12), 2],
    ['progress is rewritten', (world) => filesOf(world).progress.rewrite(2), 2],
    ['progress is rewritten again', (world) => filesOf(world).progress.rewrite(4), 2],
    ['log is rewritten', (world) => filesOf(world).log.rewrite(100), 2],
    ['stdout is empty', (world) => filesOf(world).stdout.rewrite(0), 2],
    lines('stdout', 2),
    to('Failed'),
    settled,
  ],
  'a service that is away': [
    ...[
      lines('stdout', 3),
      result('/out/a', 'a'),
      pause(2),
      fault({ code: 'unreachable' }, 4),
      lines('stdout', 2),
      pause(2),
    ],
    fault({ code: 'http-status', operations: ['DownloadPartsOfJobFilesFromCluster'] }, 3),
    ...[fault({ code: 'rate-limited', retryAfterMs: 90_000 }, 1), lines('stdout', 2), pause(3)],
    ['sessions are forgotten', ({ service }) => service.forgetSessions(), 2],
    [
      'the password is refused',
      ({ service }) => {
        service.forgetSessions();
        service.refusesSignIn = true;
      },
      3,
    ],
    [
      'the password is mended',
      (world) => {
        world.service.refusesSignIn = false;
        mendSecret(world);
      },
      3,
    ],
    fault({ code: 'silent', operations: ['ListChangedFilesForJob'] }, 8),
    fault({ code: 'answer-too-large', operations: ['DownloadPartsOfJobFilesFromCluster'], file: '5010/stdout' }, 3),
    fault({ code: 'malformed', operations: ['ListJobsForCurrentUser', 'GetCurrentInfoForJob'] }, 2),
    to('Canceled'),
    fault({ code: 'fault', jobId: JOB }, 20),
    settled,
  ],
  'a disk that fills up': [
    ...[lines('stdout', 3), pause(1)],
    ['the disk of the mirrors is full', ({ disk }) => Object.assign(disk, { full: 'of mirrors' })],
    ...[lines('stdout', 30), result('/out/a', 'a'.repeat(500)), pause(7)],
    ['all disks are full', ({ disk }) => Object.assign(disk, { full: 'all' })],
    ...[lines('stderr', 2), pause(2)],
    ['there is room', ({ disk }) => disk.heal(), 3],
    ['a write fails', ({ disk }) => disk.failAfter(3, 'EIO')],
    ...[lines('stdout', 1), to('Finished'), settled],
  ],
  'a kill, a loss of power and a lost state': [
    ...[lines('stdout', 30), lines('log', 5), result('/out/a', 'a'), pause(1)],
    ['the process ends within a call', ({ disk, agent }) => disk.endAfter(2, () => agent.kill())],
    ...[lines('stdout', 3), pause(2)],
    ['it is started again', (world) => restarted(world, true), 1],
    ...[lines('stdout', 3), pause(1)],
    ['the machine loses its power', (world) => restarted(world, false), 1],
    ['the state is lost', lostState, 2],
    ...[lines('stdout', 1), to('Finished'), settled],
  ],
  'commands of people': [
    ...[lines('stdout', 3), result('/out/a', 'a'), pause(1)],
    command('agent sync', (store, now) => store.requests.add(JOB, 'sync', now)),
    command('agent sync of a job that is not watched', (store, now) => store.requests.add('999' as JobId, 'sync', now)),
    [
      'agent verify',
      async (world) => {
        for (const { name, proof } of (await verified(world, JOB)) ?? [])
          world.note(`${name}: ${JSON.stringify(proof)}`);
      },
    ],
    command('agent unwatch', (store, now) => {
      store.jobs.unwatch(JOB, 'ending');
      store.requests.add(JOB, 'unwatch', now);
    }),
    ...[lines('stdout', 3), pause(3)],
    ['agent watch', (world) => order(world, false), 2],
    command('agent unwatch --now', (store) => store.jobs.unwatch(JOB, 'ended')),
    ['agent watch', (world) => order(world, true), 2],
    ...[to('Finished', 3), to('Running', 2), lines('stdout', 1), to('Finished', 1), to('Deleted', 5)],
  ],
  'jobs that a rule takes, and tasks that are searched for': [
    [
      'other jobs are submitted',
      ({ service, time }) => {
        const silent = new SimulatedJob(OTHER, { namesTasks: false });
        service.jobs.set(OTHER, silent);
        for (const id of ['503', '504'] as JobId[]) service.submit(id);
        silent.to('Running', time.wallMs);
        silent.write(0, 'stdout', 2);
      },
    ],
    command('agent watch --mine', (store, now) =>
      store.watchMine.save({
        ...{ include: ['**'], exclude: ['*504*'], maxAgeMs: 86_400_000 },
        ...{ maxJobs: 2, source: 'command', since: now },
      }),
    ),
    ['agent watch 502', (world) => order(world, true, OTHER), 6],
    ['503 begins', ({ service, time }) => service.job('503' as JobId).to('Running', time.wallMs), 3],
    ...[to('Finished'), settled],
    ['502 ends', ({ service, time }) => service.job(OTHER).end('Failed', time.wallMs), 40],
    command('agent unwatch --mine', (store) => void store.watchMine.remove('command'), 5),
  ],
  'results that fail, change and come back': [
    ...[result('/out/a', 'a'), result('/out/b', 'b'), result('/out/dir', '', 'link to a directory')],
    ...[
      result('/out/dead', '', 'dead link'),
      result('/out/secret', '', 'unreadable'),
      result('/out/../x', '', 'bad name'),
    ],
    ...[
      fault({ code: 'silent', ...OF_RESULTS, file: '/out/a' }, 12),
      pause(6),
      result('/out/b', 'other'),
      fault({ code: 'cut', ...OF_RESULTS, file: '/out/b' }, 6),
      pause(6),
    ],
    fault({ code: 'not-found', ...OF_RESULTS, file: '/out/b' }, 6),
    ['b is gone', (world) => jobOf(world).results.delete('/out/b'), 12],
    ...[result('/out/b', 'back'), pause(6)],
    ['the copy of a is removed', ({ mirrors }) => fs.rmSync(path.join(resultsDirectory(mirrors, JOB), 'out/a')), 6],
    ...[result('/out/c', 'c'), to('Finished'), settled],
  ],
  'bytes that are no text': [
    ...[lines('stdout', 1), lines('log', 0), bytes('log', ANY_BYTES, 2), bytes('stdout', ANY_BYTES, 2)],
    ['another release swallows marks', ({ service }) => Object.assign(service, { decoding: { swallowBom: true } }), 1],
    ...[bytes('log', ANY_BYTES, 2), bytes('stdout', Buffer.alloc(3_000, 0xff), 2)],
    ['an older release decodes', ({ service }) => Object.assign(service, { decoding: { olderRuntime: true } }), 1],
    ...[bytes('stdout', Buffer.from('é'.repeat(2_000)), 2), bytes('log', Buffer.from([0xe2, 0x82, 0xac]), 2)],
    fault({ code: 'http-status', operations: ['DownloadFileFromCluster'] }, 3),
    ...[bytes('stdout', ANY_BYTES, 3), to('Finished'), settled],
  ],
  'few calls for many jobs': [
    ['the limits change', (world) => reload(world, { requestsPerMinute: 20, concurrency: 1 }, false), 1],
    [
      'more jobs run, and each is watched',
      (world) => {
        for (let number = 2; number <= 7; number += 1) {
          const jobId = `50${number}` as JobId;
          world.service.submit(jobId).to('Running', world.time.wallMs);
          world.service.job(jobId).write(0, 'stdout', number);
          world.service.job(jobId).result('/out/a', 'file', world.time.wallMs);
          order(world, number % 2 === 0, jobId);
        }
      },
      3,
    ],
    fault({ code: 'slow', jobId: '503' as JobId }, 3),
    fault({ code: 'silent', jobId: '504' as JobId }, 3),
    fault({ code: 'unavailable', jobId: '505' as JobId, retryAfterMs: 20_000 }, 2),
    command('agent sync', (store, now) => store.requests.add(JOB, 'sync', now), 2),
    ...[to('Finished'), settled],
  ],
  'mirrors that people change': [
    ...[lines('stdout', 9), lines('log', 4), lines('progress', 2), lines('stderr', 3), pause(2)],
    ...[edited('a byte of stdout is another one', 'stdout', changeByte), lines('stdout', 1), pause(2)],
    edited('log is shorter', 'log', (file) => fs.truncateSync(file, 40), 2),
    edited('progress is gone', 'progress', (file) => fs.rmSync(file), 2),
    edited('a line is added to stderr', 'stderr', (file) => fs.appendFileSync(file, 'of a person\n')),
    ...[lines('stderr', 2), pause(2)],
    edited('stdout is a link', 'stdout', (file) => {
      fs.renameSync(file, `${file}.moved`);
      fs.symlinkSync(`${file}.moved`, file);
    }),
    ...[lines('stdout', 2), pause(2)],
    edited('log is a directory', 'log', (file) => {
      fs.rmSync(file);
      fs.mkdirSync(file);
    }),
    ...[lines('log', 2), pause(3)],
    edited('log is no directory any more', 'log', (file) => fs.rmdirSync(file), 3),
    ['the mirrors are gone', ({ mirrors, disk }) => disk.aside(() => fs.rmSync(mirrors, { recursive: true })), 2],
    ...[lines('stdout', 1), pause(2)],
    ['a rotation is killed', ({ disk, agent }) => disk.endAfter(42, () => agent.kill())],
    ['stdout is rewritten', (world) => filesOf(world).stdout.rewrite(3), 2],
    ['it is started again, and is to keep nothing', (world) => restartedWith(world, { keepGenerations: 0 }), 2],
    ['stdout is rewritten', (world) => filesOf(world).stdout.rewrite(2), 2],
    ...[to('Finished'), settled],
  ],
  'jobs that are reported one by one': [
    ['nobody is notified', (world) => reload(world, { notify: false, stallAfterMinutes: null }, false)],
    [
      'jobs that no list has are watched',
      (world) => {
        for (let number = 11; number <= 21; number += 1) {
          const jobId = `5${number}` as JobId;
          const job = new SimulatedJob(jobId, { isListed: false, namesTasks: number % 3 > 0 });
          world.service.jobs.set(jobId, job);
          job.to('Running', world.time.wallMs);
          job.write(0, 'stdout', 1);
          order(world, false, jobId);
        }
      },
      2,
    ],
    fault({ code: 'fault', operations: ['GetCurrentInfoForJob'], jobId: '512' as JobId }, 6),
    fault({ code: 'http-status', operations: ['GetCurrentInfoForJob'], jobId: '513' as JobId }, 3),
    ...['511', '512', '520'].map((id) => ending(id as JobId)),
    fault({ code: 'malformed', operations: ['ListJobsForCurrentUser'] }, 2),
    ...[to('Finished'), settled],
  ],
  'a service that names no tasks and has no jobs': [
    ['there is no job service', (world) => reload(world, { hasNoJobs: true, notify: false }, false)],
    [
      'a job without any file is watched',
      (world) => {
        world.service.jobs.set(OTHER, new SimulatedJob(OTHER));
        order(world, false, OTHER);
      },
    ],
    ...[lines('stdout', 2), pause(3), ['another task begins', (world: World) => jobOf(world).addTask()] as Step],
    ['the other task writes', (world) => jobOf(world).write(1, 'log', 2), 4],
    fault({ code: 'silent', ...OF_RESULTS }, 3),
    ...[result('/out/a', 'a'), pause(8)],
    ['nothing happens for long', () => {}, 60],
    command('agent unwatch of both', (store, now) => {
      for (const jobId of [JOB, OTHER]) {
        store.jobs.unwatch(jobId, 'ending');
        store.requests.add(jobId, 'unwatch', now);
      }
    }),
    pause(5),
  ],
  'jobs that are over for long': [
    [
      'old jobs are removed',
      (world) => reload(world, { retention: '{settledDays: 0.05, deleteFiles: true}' }, false),
      1,
    ],
    [
      'a job of another user is watched',
      (world) => {
        const job = world.service.submit(OTHER);
        job.to('Running', world.time.wallMs);
        order(world, true, OTHER);
        job.write(0, 'log', 2);
        job.result('/out/secret', 'unreadable', world.time.wallMs);
      },
      2,
    ],
    ...[lines('stdout', 2), result('/out/a', 'a'), pause(2), ending(OTHER), pause(2), to('Finished'), settled],
    ['the agent is started again', (world) => restarted(world, true), 1],
    ['an hour passes', () => {}, 60],
    ['the clock is set back', ({ time }) => time.stepWall(-3_600_000), 5],
    ['an hour passes', () => {}, 60],
    ['the clock is right', ({ time }) => time.stepWall(3_600_000), 60],
  ],
  'a receiver that is away, and a configuration that changes': [
    ['the receiver refuses', ({ receiver }) => Object.assign(receiver, { state: 'refuses' })],
    ...[lines('stdout', 10), pause(3)],
    ['the receiver is silent', ({ receiver }) => Object.assign(receiver, { state: 'silent' }), 2],
    ['the receiver takes', ({ receiver }) => Object.assign(receiver, { state: 'takes' }), 3],
    [
      'stdout is rewritten often',
      (world) => {
        for (const at of [30_000, 60_000, 90_000]) world.later(at, () => filesOf(world).stdout.rewrite(8));
      },
      4,
    ],
    ['nothing happens for long', () => {}, 15],
    [
      'the configuration changes',
      (world) =>
        reload(
          world,
          { maxIntervalSeconds: 20, results: false, concurrency: 1, exclude: [], stallAfterMinutes: 1 },
          false,
        ),
      3,
    ],
    ['the configuration has another user', (world) => reload(world, { username: 'bob' }, true), 1],
    ...[to('Finished'), settled],
  ],
};

async function restarted(world: World, hasPower: boolean): Promise<void> {
  await world.kill(hasPower);
  world.start();
}

async function restartedWith(world: World, changes: Partial<Settings>): Promise<void> {
  await world.configure({ ...world.settings, ...changes });
  await restarted(world, true);
}

async function lostState(world: World): Promise<void> {
  await ended(world, world.agent.stop());
  world.disk.aside(() => fs.rmSync(path.join(world.directory, 'state'), { recursive: true }));
  world.start();
  order(world, true);
}

test.each(Object.entries(SCENARIOS))('%s: all that the agent does', (name, steps) =>
  inWorld(World.make(1, SETTINGS), async (world) => {
    const trace = new Trace(world, () => '');
    world.service.submit(JOB).to('Running', world.time.wallMs);
    order(world, true);
    await play(world, steps);
    const { directory, agent } = world;
    if (world.isUp) await ended(world, agent.stop());
    const stored = world.disk.aside(() => rowsOf(path.join(directory, 'state', 'agent.db')));
    const all = `${trace.text}\n${trace.transactions} transactions\n\nmirror\n${treeOf(world.mirrors)}\nstate\n${stored}`;
    await expectPrinted(import.meta.dirname, name, all);
  }),
);

test('each text is one of these lives', () => expectNoOthers(import.meta.dirname, Object.keys(SCENARIOS)));
