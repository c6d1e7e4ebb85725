/** What the functions of the page make of their arguments: text of jobs, times, orders, links. */
import path from 'node:path';
import fc from 'fast-check';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { TaskId } from '../../../src/job.ts';
import type { ShownTask } from '../../../src/job-information.ts';
import { shapeOf } from '../../../src/number-lines.ts';
import type { StoredError } from '../../../src/store/rows.ts';
import type { Generations, ShownError } from '../../../src/view/contract/addresses.ts';
import type { AgentState, FileState, FleetAgent, FleetState, JobSummary } from '../../../src/view/contract/events.ts';
import { NO_RESULTS, serviceErrorOf } from '../../../src/view/events/jobs.ts';
import { conditionOf, isOwn, isStale, type KnownState } from '../../../src/view/page/condition.ts';
import { kindsNear } from '../../../src/view/page/file/numbers.ts';
import { TextWindow } from '../../../src/view/page/file/text-window.ts';
import * as tasks from '../../../src/view/page/job/tasks.ts';
import * as list from '../../../src/view/page/jobs/list.ts';
import { type Column, type Columns, clicked, sorted } from '../../../src/view/page/parts/sort.ts';
import { hashOf, type OpenedFile, routeOf } from '../../../src/view/page/route.ts';
import { csvRows } from '../../../src/view/page/text/csv.ts';
import { numberText, risingColumn } from '../../../src/view/page/text/plotted.ts';
import { coloursOf, decode, isBinary, pieces, plainText, shown } from '../../../src/view/page/text/terminal.ts';
import { ago, clock, counted, duration, moment } from '../../../src/view/page/text/units.ts';
import { levelOf, progressOf } from '../../../src/view/page/text/values.ts';
import { cpuMs } from '../../support/cpu-cost.ts';
import { expectCases, stepOf } from '../../support/errors.ts';
import { anyCharacter, numRuns } from '../../support/property-runs.ts';
import { jobSummary, stubPage } from '../../support/view-models.ts';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
const AGENTS = '../../../src/view/page/service/agents.tsx';
const GENERATIONS = '../../../src/view/page/job/generations.tsx';

interface Imported {
  readonly COLUMNS: Columns<string, never>;
  resolved(opened: OpenedFile, generations: Generations | undefined): object | undefined;
}
let imported: Imported;

const NOW = Date.UTC(2026, 10, 22, 7, 35, 45);
const ESC = '\u001b';

beforeEach(async () => {
  vi.stubEnv('TZ', 'UTC');
  onTestFinished(() => void vi.unstubAllEnvs());
  stubPage();
  const modules = await Promise.all([GENERATIONS, AGENTS].map((name) => import(name) as Promise<object>));
  imported = Object.assign({}, ...modules) as Imported;
});

function windowOf(text: string, start = 0): TextWindow {
  const window = new TextWindow();
  window.replace({ start, line: 0, beginsLine: true }, Buffer.from(text));
  return window;
}

const jobsOf = (jobs: readonly Partial<JobSummary>[]) => jobs.map((job, at) => jobSummary(`${at + 1}`, job));

/** The rows in the order of each column, at the first click on its head and at the second. */
const orders = <Name extends string>(columns: Columns<Name, never>, order: (by: Name, isDown: boolean) => string[]) =>
  (Object.keys(columns) as Name[]).flatMap((name) =>
    [columns[name].isDown, !columns[name].isDown].map(
      (isDown) => `${columns[name].label} ${isDown ? 'down' : 'up'}: ${order(name, isDown).join(' ')}`,
    ),
  );

const error = { code: 'unreachable', message: 'refused', hint: 'wait', since: 5, retryAt: 9, isOfService: true };
const agent: AgentState = { running: true, pid: 1, watchMine: null, serviceError: null, lastPolledAt: null };
const known: KnownState = {
  ...{ connection: 'open', lostAt: null, refusal: '', agent, fleet: undefined, stateError: null },
};

/** `fleet`: the states of its agents. */
function conditionWith(more: Partial<KnownState>, agents?: readonly FleetAgent['state'][], fleet = {}) {
  const members = agents?.map((state): Pick<FleetAgent, 'state'> => ({ state })) as FleetAgent[] | undefined;
  return conditionOf({
    ...{ ...known, ...more },
    agent: more.agent === null ? undefined : { ...agent, ...more.agent },
    fleet: members && ({ name: 'ben', agents: members, waitingJobs: 0, error: null, ...fleet } satisfies FleetState),
  });
}

/** Tasks, each with what is reported of it and the lengths of its files. */
type WrittenTask = Partial<ShownTask> & { readonly files?: Partial<Record<FileState['file'], object>> };

function rowsOf(written: Readonly<Record<string, WrittenTask>>) {
  const reported = Object.entries(written).map(([id, { files: _, ...task }]) => ({
    ...{
      taskId: id as TaskId,
      taskState: null,
      errorMessage: null,
      name: `part ${id}`,
      startTime: null,
      endTime: null,
    },
    ...task,
  }));
  const files = Object.entries(written).flatMap(([taskId, task]) =>
    Object.entries(task.files ?? {}).map(([file, row]) => ({
      ...{ taskId, file: file as FileState['file'], bytes: 0, grownAt: null, version: 'g1', generation: 1 },
      ...{ verified: false, unproven: null, error: null, ...row },
    })),
  );
  const results = { ...NO_RESULTS, lastSync: null, arriving: [] };
  const ofJob = { found: 0, searching: false, hint: null, reported: reported.filter(({ name }) => name !== '') };
  return tasks.taskRows({ ...jobSummary('501'), tasks: ofJob, results, unproven: null }, files);
}

const styled = (line: string, before?: string) =>
  shown(line, before).map(({ text, style }) => {
    const { colour = null, background = null, decorations = [] } = style ?? {};
    return [JSON.stringify(text), colour ?? '', background === null ? '' : `on ${background}`, ...decorations]
      .filter((part) => part !== '')
      .join(' ');
  });

const FUNCTIONS: Readonly<Record<string, (...of: never[]) => unknown>> = {
  ...{ ago, clock, coloursOf, counted, csvRows, duration, levelOf, moment, numberText, progressOf },
  agents: (agents: readonly Partial<FleetAgent>[]) =>
    orders(imported.COLUMNS, (by, isDown) =>
      sorted(agents as FleetAgent[], imported.COLUMNS[by] as Column<FleetAgent>, {
        isDown,
        now: NOW,
        tie: () => 0,
      }).map(({ name }) => name),
    ),
  ...{ risingColumn, shapeOf, styled, groupOf: (job: Partial<JobSummary>) => list.groupOf(jobSummary('1', job)) },
  marked: (text: string) =>
    pieces(text).map(({ text: piece, means }) => (means === undefined ? piece : [piece, means])),
  markedBytes: (text: string) => pieces(decode(Buffer.from(text, 'latin1'))).map(({ text: piece }) => piece),
  plainText: (text: string) => plainText(Buffer.from(text)),
  route: (hash: string) => [routeOf(hash), hashOf(routeOf(hash))],
  counts: (jobs: readonly Partial<JobSummary>[]) => Object.fromEntries(list.countsOf(jobsOf(jobs).map(list.groupOf))),
  jobs: (jobs: readonly Partial<JobSummary>[]) =>
    orders(list.COLUMNS, (by, isDown) => list.ordered(jobsOf(jobs), { by, isDown }, NOW).map(({ jobId }) => jobId)),
  run: (job: Partial<JobSummary>) => [list.runTime(jobSummary('1', job), NOW), list.runText(jobSummary('1', job), NOW)],
  found: (job: Partial<JobSummary>, ...filters: readonly string[]) =>
    filters.filter((filter) => list.matches(jobSummary('501', job), filter)),
  clicks: (...heads: (keyof typeof list.COLUMNS)[]) => {
    let sort: Parameters<typeof list.ordered>[1] = list.FAILED_FIRST;
    return heads.map((head) => {
      sort = clicked(list.COLUMNS, sort, head);
      return sort;
    });
  },
  tasks: (written: Parameters<typeof rowsOf>[0]) => [
    ...rowsOf(written).map(({ reported: _, files: _files, ...row }) => JSON.stringify(row)),
    ...orders(tasks.COLUMNS, (by, isDown) =>
      tasks.ordered(rowsOf(written), { by, isDown }).map(({ taskId }) => taskId),
    ),
    `first: ${JSON.stringify(tasks.firstOf(rowsOf(written)))}`,
  ],
  foundTasks: (written: Parameters<typeof rowsOf>[0], ...filters: readonly string[]) =>
    filters.map((filter) => {
      const found = rowsOf(written).filter((row) => tasks.matches(row, filter));
      return `${filter}: ${found.map(({ taskId }) => taskId).join(' ')}`;
    }),
  condition: (...of: Parameters<typeof conditionWith>) => {
    const condition = conditionWith(...of);
    return [condition, `stale: ${isStale(condition)}`];
  },
  isOwn: (more: Partial<ShownError>, state: Partial<KnownState>) => isOwn({ ...error, ...more }, conditionWith(state)),
  link: (opened: OpenedFile, generations?: Generations) => imported.resolved(opened, generations),
  kinds: (text: string, byte?: number, start = 0) => kindsNear(windowOf(text, start), byte),
  isBinary: (text: string) => isBinary(Buffer.from(text, 'latin1')),
  serviceError: (...jobs: readonly (readonly [number | null, Partial<StoredError>?, 'settled'?])[]) =>
    serviceErrorOf(
      jobs.map(([polledAt, failure, state = 'watched' as const]) => ({
        ...{ state, polledAt },
        error: failure
          ? ({ code: 'unreachable', message: 'x', hint: null, since: 0, ...failure } as StoredError)
          : null,
      })),
    ),
};

it('each function of the page returns what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'functions.txt'), (written) => {
    const result = stepOf(written, FUNCTIONS);
    const lines = Array.isArray(result) ? result : [result];
    const isPlain = (line: unknown): line is string => typeof line === 'string' && /^\P{Cc}+$/u.test(line);
    return lines.map((line) => (isPlain(line) ? line : JSON.stringify(line ?? null)));
  });
});

it('the cells of a CSV file are those that were written, whatever is in them', () => {
  const cell = fc.oneof(fc.string(), fc.constantFrom('"', ',', '\n', '\r\n', '""', '1.5'));
  fc.assert(
    fc.property(fc.array(fc.array(cell, { minLength: 2, maxLength: 2 }), { maxLength: 20 }), (rows) => {
      const all = [['first', 'second'], ...rows.filter((row) => row.some((one) => one !== ''))];
      const text = all.map((row) => row.map((one) => `"${one.replaceAll('"', '""')}"`).join(',')).join('\r\n');
      expect(csvRows(text)).toEqual(all);
    }),
    numRuns(200),
  );
});

it('an address leads nowhere but to a part of the page, whatever it says', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (hash) => {
      expect(hashOf(routeOf(hash))).toMatch(/^#\/[a-z0-9/?=%&A-Z+._*@:-]*$/);
    }),
    numRuns(300),
  );
});

describe('a line as a terminal shows it', () => {
  const textOf = (line: string) =>
    shown(line)
      .map(({ text }) => text)
      .join('');

  it('loses no character that moves nothing', () => {
    const text = fc
      .string({ unit: 'grapheme', maxLength: 50 })
      .filter((line) => ![...line].some((one) => ['\r', '\b', ESC].includes(one)));
    fc.assert(
      fc.property(text, (line) => {
        expect([textOf(line), textOf(`${ESC}[31m${line}${ESC}[0m`)]).toEqual([line, line]);
      }),
      numRuns(300),
    );
  });

  it.each([
    ['returns', '[####    ] 12 %\r'.repeat(8_000)],
    ['colours', `${ESC}[31mx`.repeat(12_000)],
    ['beginnings of titles', `${ESC}]`.repeat(30_000)],
    ['numbers without an end', `${ESC}[${'1;'.repeat(30_000)}`],
    ['jumps far to the right', `${ESC}[999999999Cx`.repeat(5_000)],
  ])('takes no long time over 64 KiB of %s', (_, line) => {
    expect(cpuMs(() => shown(line))).toBeLessThan(2_000);
  });
});
