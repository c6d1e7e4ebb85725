/** Which events follow from what happens to a job, and to the agent. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { JobId, TaskId } from '../../src/job.ts';
import { jobTimeOf } from '../../src/job-information.ts';
import { EVENT_TYPES } from '../../src/notification.ts';
import { UnderWay } from '../../src/notify/deliveries.ts';
import { newEvent } from '../../src/notify/events.ts';
import { Rule } from '../../src/notify/rules.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { JOB, KEY, NotifyPlace, placeWith, ruleOf } from './place.ts';

const ALL = ruleOf({ on: [...EVENT_TYPES], match: 'ERROR' });

function withJob(...rules: readonly ReturnType<typeof ruleOf>[]): NotifyPlace {
  const place = placeWith(...rules);
  place.start();
  place.watch();
  return place;
}

describe('a job', () => {
  it('is started, stalled, failed and complete, each once', async () => {
    const place = withJob(ALL);
    place.report('Queued');
    await place.tick();
    expect(place.shown).toEqual([]);
    place.report('Running');
    await place.tick();
    place.stall();
    await place.tick();
    const task = { id: '9001' as TaskId, name: null, state: 'Failed', startTime: null, endTime: null };
    const errors = ['CUDA out of memory', null, ' ', 'killed', '', 'lost', 'gone', 'no space left'];
    place.report('Failed', { tasks: errors.map((errorMessage) => ({ ...task, errorMessage })), name: 'heat-1' });
    await place.tick();
    for (const row of place.store.liveFiles.ofJob(JOB)) place.store.liveFiles.save({ ...row, verified: row.position });
    await place.tick();
    expect(place.shown).toHaveLength(3);
    place.setState('settled');
    await place.tick();
    place.start();
    await place.tick();
    expect(place.shown).toEqual([
      'started',
      'stalled it runs, and no live file has grown since 1970-01-01T00:00:00.005Z',
      'failed task 9001: CUDA out of memory; task 9001: killed; task 9001: lost; and 2 tasks more',
      'results-complete the last complete pass is done',
    ]);
    expect(place.waiting[2]).toMatchObject({
      jobId: JOB,
      jobName: 'heat-1',
      count: 1,
      time: expect.stringMatching(/Z$/),
    });
  });

  it('whose rows cannot be read fails alone', async () => {
    const place = withJob(ALL);
    place.watch('502' as JobId);
    place.report('Running');
    place.report('Running', {}, '502' as JobId);
    const beyondDates = { polledAt: 9, grownAt: null, refused: 0, failures: 0, error: null, stalledAt: 9e15 };
    place.store.jobs.endRun(JOB, beyondDates);
    await place.tick();
    expect(place.waiting.map(({ type, jobId }) => `${jobId} ${type}`)).toContain('502 started');
    expect(place.waiting.map(({ jobId }) => jobId)).not.toContain(JOB);
    expect(place.warnings.filter((one) => one === 'creating notifications failed')).toHaveLength(1);
    place.store.jobs.endRun(JOB, { ...beyondDates, stalledAt: null });
    await place.tick();
    expect(place.waiting.map(({ type, jobId }) => `${jobId} ${type}`)).toContain(`${JOB} started`);
  });

  it.each<[string, string, (place: NotifyPlace) => void]>([
    ['deleted', 'Deleted', () => {}],
    ['settled without results', 'Finished', (place) => place.watch(JOB, null, false)],
    [
      'settled with a live file that is not proven',
      'Finished',
      ({ store }) => {
        for (const row of store.liveFiles.ofJob(JOB)) store.liveFiles.save({ ...row, position: 5, verified: 4 });
      },
    ],
  ])('that is %s is not complete', async (_, state, prepare) => {
    const place = withJob(ruleOf({ on: ['results-complete'] }));
    place.report('Running');
    await place.tick();
    prepare(place);
    place.report(state);
    place.setState('settled');
    await place.tick();
    expect(place.shown).toEqual([]);
    await place.tick();
    // What did not change is not read again.
    const reads = vi.spyOn(place.store.outbox, 'changedJobs');
    await place.clock.pass(10_000);
    expect(reads).not.toHaveBeenCalled();
  });

  it.each([
    ['runs: a list that lags', 'Running A, Queued, Running A', 'started'],
    ['is over: a list that lags', 'Finished A, Running A, Finished A', 'started finished'],
    ['ran twice, without a report between', 'Finished A, Finished B', 'started finished started finished'],
    ['was queued again', 'Running A, Queued, Running B', 'started started'],
    ['ended between two readings', 'Finished', 'started finished'],
    ['was canceled between two readings', 'Canceled', 'canceled'],
    ['was deleted', 'Deleted', ''],
    ['is failed after all', 'Finished A, Failed A', 'started finished failed'],
  ])('that %s has events by its runs, which start at A and at B', async (_, reports, types) => {
    const place = withJob(ALL);
    place.report('Submitted');
    await place.tick();
    const starts: Readonly<Record<string, string>> = { A: '2026-11-27T23:00:00Z', B: '2026-11-27T23:30:00Z' };
    for (const report of reports.split(', ')) {
      const [state = '', run = ''] = report.split(' ');
      place.report(state, { startTime: run === '' ? null : jobTimeOf(starts[run] ?? '') });
      await place.tick();
    }
    expect(place.waiting.map(({ type }) => type).join(' ')).toBe(types);
  });

  it.each<[string, string[], string | null, number, readonly string[]]>([
    ['seen active, whose cluster has a slow clock', ['Running', 'Failed'], 'Z', -60_000, ['started', 'failed']],
    ['seen waiting, whose end has no zone', ['Queued', 'Failed'], '', -60_000, ['started', 'failed']],
    ['first reported as over', ['Failed'], 'Z', -60_000, []],
    ['first reported as over, whose end is later', ['Failed'], 'Z', 60_000, ['started', 'failed']],
    ['first reported as over, whose end has no zone', ['Failed'], '', 60_000, []],
    ['first reported as over, without an end', ['Failed'], null, 0, []],
    ['that a list had as active before it was watched', ['Failed'], null, 0, ['started', 'failed']],
  ])('%s', async (what, states, zone, endsInMs, types) => {
    const place = placeWith(ALL);
    place.start();
    place.watch(JOB, what.includes('a list') ? 'Queued' : null);
    await place.tick();
    const end = new Date(place.clock.now() + endsInMs).toISOString().replace('Z', zone ?? '');
    for (const state of states) {
      place.report(state, state === 'Failed' && zone !== null ? { endTime: jobTimeOf(end) } : {});
      await place.tick();
    }
    expect(place.waiting.map(({ type }) => type)).toEqual(types);
  });

  it.each([
    ['Failed', []],
    ['Running', ['started']],
  ])('that was unwatched while it ran, and is %s when it is watched again', async (state, types) => {
    const place = withJob(ruleOf({ on: ['started', 'stalled', 'failed'], jobs: ['heat-*'] }));
    place.report('Running', { name: 'heat-1' });
    await place.tick();
    place.setState('ended');
    await place.tick();
    place.clock.stepWall(-3_600_000);
    place.watch();
    // What was reported before is no news, wherever the clock is set, and whichever process reads it. The name still counts.
    place.stall();
    await place.tick();
    place.start();
    await place.tick();
    place.report(state, { name: 'heat-1' });
    await place.tick();
    expect(place.waiting.map(({ type }) => type).sort()).toEqual(['stalled', 'started', ...types]);
  });

  it.each([
    ['was settled while it ran, and is reported again', ['settled', 'resumed']],
    ['is watched a second time, and stalls', ['watched', 'stalled']],
    ['was over, and is watched again while a list lags', ['Finished', 'settled', 'watched']],
  ])('that %s has started and finished once', async (_, steps) => {
    const place = withJob(ruleOf({ on: ['started', 'finished'] }));
    const startTime = jobTimeOf('2026-11-27T23:00:00Z');
    for (const step of ['Running', ...steps, 'Running', 'Finished']) {
      if (step === 'settled') place.setState(step);
      else if (step === 'resumed') place.store.jobs.resume(JOB);
      else if (step === 'watched') place.watch();
      else if (step === 'stalled') place.stall();
      else place.report(step, { startTime });
      await place.tick();
    }
    expect(place.shown).toEqual(['started', 'finished']);
  });

  it('that is watched after the start is new, wherever the clock is set', async () => {
    const place = placeWith(ALL);
    place.start();
    await place.tick();
    place.clock.stepWall(-3_600_000);
    place.watch();
    place.grow('ERROR\n');
    place.report('Running');
    place.store.jobs.endRun(JOB, { polledAt: 9, grownAt: 9, refused: 0, failures: 0, error: null });
    await place.tick();
    expect(place.shown).toEqual(['started', 'match 1 ERROR']);
  });

  it('that is read before its first poll loses nothing by a kill after that poll', async () => {
    const place = placeWith(ALL);
    const notifications = place.start();
    place.watch();
    void notifications.catchUp();
    place.report('Running');
    place.grow('ERROR\n');
    place.store.jobs.endRun(JOB, { polledAt: 9, grownAt: 9, refused: 0, failures: 0, error: null });
    place.start();
    await place.tick();
    expect(place.shown).toEqual(['started', 'match 1 ERROR']);
  });

  it('that was followed before there were rules begins where it stands', async () => {
    const place = placeWith(ALL);
    place.watch();
    place.report('Running');
    place.grow('ERROR 1\nERR');
    place.store.jobs.endRun(JOB, { polledAt: 9, grownAt: 9, refused: 0, failures: 0, error: null });
    await place.tick();
    await place.clock.pass(60_000);
    place.start();
    await place.tick();
    place.grow('OR 2\nERROR 3\n');
    place.report('Finished');
    await place.tick();
    // Half of the second line was there before; lines before it were not counted.
    expect(place.shown).toEqual(['finished', 'match ERROR 3']);
  });

  it('has events for the rules that want them: by event, id, name and file', async () => {
    const rules = [
      ruleOf({ on: ['failed'], jobs: ['heat-*'] }),
      ruleOf({ on: ['failed'], jobs: ['501'] }),
      ruleOf({ on: ['failed'], jobs: ['50*', '!501'] }),
      ruleOf({ on: ['match'], match: '^out', files: ['std*', '!stderr'] }),
      ruleOf({ on: ['match'], match: '^out', files: ['stderr'] }),
    ];
    const place = withJob(...rules);
    place.report('Running', { name: 'heat-7' });
    place.grow('out 1\n out 2\r\nout 3');
    await place.tick();
    place.report('Failed', { name: 'heat-7' });
    await place.tick();
    expect(place.shown).toEqual(['match 1 out 1', 'failed', 'failed']);
    expect(new Set(place.store.outbox.all().map(({ rule }) => rule)).size).toBe(3);
  });

  it.each<[string, number, (place: NotifyPlace) => void, number]>([
    ['until it is reported', 14, (place) => place.report('Running', { name: 'heat-1' }), 2],
    ['until it is unwatched', 14, (place) => place.setState('ended'), 1],
    ['for a quarter of an hour', 15, (place) => place.grow(''), 1],
    ['not at all without a job service', 0, () => {}, 1],
  ])('whose name a rule needs waits with its lines %s', async (_, minutes, happens, matches) => {
    const place = placeWith(ruleOf({ match: 'ERROR', jobs: ['heat-*'] }), ruleOf({ match: '^ERROR' }));
    place.hasJobService = minutes > 0;
    place.start();
    place.watch();
    place.grow('ERROR\n');
    await place.clock.pass(minutes * 60_000);
    expect(place.shown).toEqual([]);
    happens(place);
    await place.tick();
    expect(place.shown).toEqual(Array(matches).fill('match 1 ERROR'));
  });

  it.each([{ files: ['stderr'] }, { jobs: ['501'] }, { on: ['failed' as const] }])(
    'whose name no rule needs has its matches at once: beside %j',
    async (of) => {
      const place = withJob(ruleOf({ match: 'ERROR', jobs: ['heat-*'], ...of }), ruleOf({ match: '^ERROR' }));
      place.grow('ERROR\n');
      await place.tick();
      expect(place.shown).toContain('match 1 ERROR');
    },
  );

  it('matches what follows a progress bar on its line, however long, without colours, and numbers the next line right', async () => {
    const place = withJob(ruleOf({ match: '\\boom_kill\\b|^Killed' }));
    for (const count of [20, 100, 40_000]) {
      place.grow(Array.from({ length: count }, (_, at) => `\rEpoch 3: ${at}/${count} ${'#'.repeat(30)}`).join(''));
      await place.tick();
      place.grow('slurmstepd: Detected 1 \u001b[31moom_kill\u001b[0m event\n\rfine\r\u001b[1mKilled\r\n');
      await place.tick();
    }
    expect(place.waiting.map(({ line, count }) => [line, count])).toEqual([1, 2, 3, 4, 5, 6].map((line) => [line, 1]));
    expect(place.waiting[4]?.text).toContain('oom_kill');
    expect(place.waiting[4]?.text?.length).toBeLessThan(200);
  });

  it('matches each state of a progress bar whole, though its line is read in pieces', async () => {
    const place = withJob(ruleOf({ match: 'oom_kill' }));
    const state = (text = '') => `\r${text.padStart(1_023 + text.length / 2, '#')}`;
    place.grow(`${state().repeat(1_023)}${state('oom_kill')}${state().repeat(10)}\n`);
    await place.tick();
    expect(place.waiting.map(({ line, count }) => [line, count])).toEqual([[1, 1]]);
  });

  it('matches a line that is longer than a text of an event wherever the word stands, once', async () => {
    const place = withJob(ruleOf({ match: 'oom_kill' }));
    place.grow(`${'x'.repeat(4_092)}oom_kill${'y'.repeat(10_000)}oom_kill end\nnext oom_kill\n`);
    await place.tick();
    expect(place.waiting.map(({ line }) => line)).toEqual([1, 2]);
    expect(place.waiting[0]?.text).toContain('oom_kill end');
  });

  it('of which a line matches 20,000 times has few deliveries, which count them', async () => {
    const place = withJob(ruleOf({ match: 'ERROR' }));
    for (let megabytes = 0; megabytes < 10; megabytes++) place.grow('ERROR\n'.repeat(2_000));
    await place.tick();
    await place.clock.passUntil('all', () => place.waiting.reduce((sum, { count }) => sum + count, 0) === 20_000);
    expect(place.waiting.length).toBeLessThanOrEqual(10);
    expect(place.waiting[0]).toMatchObject({ type: 'match', line: 1, text: 'ERROR' });
  });

  it.each(['watched', 'settled'] as const)(
    'whose lines are long, binary or without an end is read in bounded pieces: %s',
    async (state) => {
      const place = withJob(ruleOf({ match: 'END$' }), ruleOf({ match: 'BEGIN' }));
      place.setState(state);
      place.grow(`BEGIN${'x'.repeat(3_000_000)}END\n`);
      place.grow(Buffer.from([0xff, 0xfe, 0x00, 0x0a]));
      place.grow('BEGIN and END\n');
      await place.tick();
      expect(place.waiting.map(({ text = '' }) => text.length)).toEqual([4_096, 456, 13, 13]);
    },
  );

  it('whose long line is followed by many short ones is read by whole lines', async () => {
    const place = withJob(ruleOf({ match: '^ERROR 1234$' }));
    place.grow(`${'x'.repeat(700_000)}\n${'ERROR 1234\n'.repeat(50_000)}`);
    await place.tick();
    const counted = () => place.waiting.reduce((sum, { count }) => sum + count, 0);
    await place.clock.passUntil('all', () => counted() >= 50_000);
    expect(counted()).toBe(50_000);
    expect(place.waiting[0]).toMatchObject({ line: 2 });
  });

  it.each(['truncated', 'rewritten'] as const)('whose live file is %s has an event about that file', async (kind) => {
    const place = withJob(ruleOf({ on: [kind] }));
    place.grow('a line\n');
    place.report('Running', { name: 'heat-7' });
    await place.tick();
    await place.rotate(kind, async () => {});
    await place.tick();
    const about = { jobId: JOB, jobName: 'heat-7', ...KEY, generation: 2, reason: 'it begins otherwise', count: 1 };
    expect(place.waiting).toEqual([
      { ...about, type: kind, id: expect.any(String), time: new Date(place.clock.now()).toISOString() },
    ]);
  });

  it('has no events of bytes that are not committed, and all others when its agent stops or has another configuration', async () => {
    const place = placeWith(ruleOf({ match: 'ERROR' }));
    const notifications = place.start();
    place.watch();
    place.grow('fine\n');
    await place.tick();
    place.grow('ERROR 1\n');
    fs.appendFileSync(place.mirror(), 'ERROR 2\n');
    await notifications.stop();
    expect(place.clock.timers).toBe(0);
    expect(place.shown).toEqual(['match 2 ERROR 1']);
    const next = place.start();
    place.grow('');
    const row = place.store.liveFiles.get(JOB, KEY);
    if (row !== undefined) place.store.liveFiles.save({ ...row, position: row.position + 'ERROR 2\n'.length });
    await next.replace();
    expect(place.shown).toEqual(['match 2 ERROR 1', 'match 3 ERROR 2']);
  });

  it('is read on where it was read, though no rule read files for a while', async () => {
    const directory = temporaryDirectory();
    const withRules = async (of: Parameters<typeof ruleOf>[0], text: string) => {
      const place = new NotifyPlace(directory, [ruleOf(of)]);
      place.start();
      if (text === 'fine\n') place.watch();
      place.grow(text);
      place.report(text);
      await place.tick();
      const { shown } = place;
      place.close();
      return shown;
    };
    expect(await withRules({ match: 'ERROR' }, 'fine\n')).toEqual([]);
    expect(await withRules({ on: ['finished'] }, 'ERROR 1\n')).toEqual([]);
    expect(await withRules({ match: 'ERROR' }, 'ERROR 2\n')).toEqual(['match 2 ERROR 1', 'match 3 ERROR 2']);
  });

  it('whose state is older than what was read of it is read anew', async () => {
    const place = withJob(ruleOf({ match: 'ERROR' }));
    place.grow('fine\nERROR\n');
    await place.tick();
    place.store.outbox.savePosition({ jobId: JOB, ...KEY, generation: 2, position: 3, lines: 7 });
    place.grow('ERROR\n');
    await place.tick();
    await place.tick();
    expect(place.shown).toEqual(['match 2 ERROR', 'match 2 ERROR', 'match 3 ERROR']);
  });

  it('is read on where a pattern takes too long', async () => {
    const place = withJob(ruleOf({ match: '^(a+)+$' }), ruleOf({ match: 'b$' }));
    place.grow(`${'a'.repeat(60)}b\n`);
    const { matches } = place;
    const slow = async (pattern: string, lines: readonly string[]) =>
      pattern === '^(a+)+$' ? undefined : await matches(pattern, lines);
    place.matches = slow;
    await place.tick();
    place.grow('b\n');
    await place.tick();
    place.matches = matches;
    place.grow('aaa\n');
    await place.tick();
    const tooLong = () => place.lines.filter(([, message]) => message.includes('takes too long'));
    expect(tooLong()).toHaveLength(1);
    expect(place.shown).toEqual([`match 1 ${'a'.repeat(60)}b`, 'match 2 b', 'match 3 aaa']);
    // Once a minute, with their number.
    await place.clock.pass(60_000);
    place.matches = slow;
    place.grow('c\nc\n');
    await place.tick();
    const about = { jobId: JOB, ...KEY, target: 'url http://127.0.0.1:9', hint: expect.stringContaining('repetition') };
    expect(tooLong().map(([level, , fields]) => [level, fields])).toEqual(
      [1, 3].map((lines) => ['warn', { ...about, lines }]),
    );
  });
});

it('a mirror that cannot be read is one log line, and keeps no other one waiting', async () => {
  const place = placeWith(ruleOf({ match: 'ERROR' }));
  place.start();
  for (const jobId of ['501', '502'] as JobId[]) {
    place.watch(jobId);
    place.grow('ERROR\n', jobId);
  }
  fs.renameSync(place.mirror(), `${place.mirror()}.mine`);
  fs.symlinkSync(`${place.mirror()}.mine`, place.mirror());
  await place.clock.pass(60_000);
  expect(place.waiting.map(({ jobId }) => jobId)).toEqual(['502']);
  const failures = place.warnings.filter((warning) => warning === 'creating notifications failed');
  expect(failures).toHaveLength(1);
  fs.renameSync(`${place.mirror()}.mine`, place.mirror());
  await place.tick();
  expect(place.waiting.map(({ jobId }) => jobId)).toEqual(['502', '501']);
});

it('a job that was removed and is watched again is read from its first line', async () => {
  const place = withJob(ruleOf({ match: 'ERROR' }));
  for (const ends of [true, false]) {
    place.grow('ERROR\nan unfinished line');
    await place.tick();
    if (!ends) break;
    place.setState('ended');
    await place.tick();
    place.store.transaction(() => place.store.jobs.forget(JOB, place.clock.now()));
    await place.tick();
    place.watch();
  }
  expect(place.shown).toEqual(['match 1 ERROR', 'match 1 ERROR']);
});

it('the jobs are unsent whose events are not read or not delivered', async () => {
  const place = placeWith(ruleOf({ on: ['started', 'match'], match: 'ERROR' }));
  const notifications = place.start();
  const unsent = async (change: () => void) => {
    change();
    const before = [...notifications.unsent()];
    await place.tick();
    return [before, [...notifications.unsent()]];
  };
  expect(await unsent(() => {})).toEqual([[], []]);
  expect(await unsent(() => place.watch())).toEqual([[JOB], []]);
  expect(await unsent(() => place.grow('a line\n'))).toEqual([[JOB], []]);
  expect(await unsent(() => place.report('Queued'))).toEqual([[JOB], []]);
  expect(await unsent(() => place.report('Running'))).toEqual([[JOB], [JOB]]);
  // What was given up waits no more.
  for (const row of place.store.outbox.all()) place.store.outbox.save({ ...row, dueAt: null });
  expect([...notifications.unsent()]).toEqual([]);
  const without = placeWith();
  const none = without.start();
  without.watch();
  await none.catchUp();
  expect([...none.unsent(), ...without.store.outbox.jobs.all()]).toEqual([]);
  expect(without.clock.timers).toBe(0);
  // Nobody reads files.
  const started = placeWith(ruleOf({ on: ['started'] }));
  const onlyStarts = started.start();
  started.watch();
  started.grow('ERROR\n');
  await started.tick();
  expect([...onlyStarts.unsent()]).toEqual([]);
});

it('an agent that cannot do its work for a minute is one event of each rule, until it recovers, under any configuration', async () => {
  const rules = [ruleOf({ on: ['agent-degraded'] }), ruleOf({ on: ['started'] })];
  const place = placeWith(...rules);
  const underWay = new UnderWay();
  let notifications = place.start(undefined, underWay, true);
  const configure = async (changed: typeof rules) => {
    await place.clock.passWhile(notifications.replace());
    place.rules = changed;
    notifications = place.start(undefined, underWay, true);
  };
  const passed = async (ms: number) => {
    await place.clock.pass(ms);
    return place.shown;
  };
  place.degraded = 'the service cannot be reached';
  await place.clock.pass(50_000);
  place.degraded = undefined;
  await place.tick();
  place.degraded = 'the service cannot be reached';
  await place.clock.pass(30_000);
  await configure(rules);
  expect(await passed(28_000)).toEqual([]);
  const first = 'agent-degraded the service cannot be reached';
  expect(await passed(4_000)).toEqual([first]);
  await configure(rules);
  expect(await passed(600_000)).toEqual([first]);
  await configure([...rules, ruleOf({ on: ['agent-degraded'], jobs: ['1'] })]);
  expect(await passed(600_000)).toEqual([first, first]);
  place.degraded = undefined;
  await place.tick();
  place.degraded = 'it is slow';
  const second = 'agent-degraded it is slow';
  expect(await passed(90_000)).toEqual([first, first, second, second]);
  // Without rules, the end of a failure is not seen, and its deliveries are dropped.
  await configure([]);
  await configure(rules);
  expect(await passed(59_000)).toEqual([]);
  expect(await passed(4_000)).toEqual([second]);
});

it('deliveries of a rule that was taken away are forgotten', async () => {
  const directory = temporaryDirectory();
  const place = new NotifyPlace(directory, [ruleOf({ on: ['started'] })]);
  place.start();
  place.watch();
  place.report('Running');
  await place.tick();
  expect(place.waiting).toHaveLength(1);
  place.close();
  const next = new NotifyPlace(directory, [ruleOf({ on: ['failed'] })]);
  onTestFinished(() => next.close());
  next.start();
  expect(next.waiting).toEqual([]);
});

it('a rule that leaves a job out by its id takes none of its events because it has no name', () => {
  const rule = new Rule(ruleOf({ on: ['started'], jobs: ['*', '!501'] }));
  const names = [{}, { jobName: '' }, { jobName: 'heat-7' }];
  const isTaken = names.map((name) => rule.takes(newEvent('started', 0, { jobId: JOB, ...name })));
  expect(isTaken).toEqual([false, false, true]);
});

it('a rule has the id that it had before it could name a proxy and authorities', () => {
  const { proxy, caFile, ...settings } = ruleOf({ match: 'ERROR' });
  const before = createHash('sha256').update(JSON.stringify(settings)).digest('hex').slice(0, 16);
  expect(new Rule({ ...settings, proxy, caFile }).id).toBe(before);
  for (const more of [{ proxy: 'http://proxy.example' }, { caFile: '/ca.pem' }])
    expect(new Rule({ ...settings, proxy, caFile, ...more }).id).not.toBe(before);
});
