/** What functions of the command line make of their arguments, which stand in functions.txt as JSON. */

import path from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, it, onTestFinished, vi } from 'vitest';
import { parseSince } from '../../src/cli/arguments.ts';
import { healthOf } from '../../src/cli/check/service.ts';
import { jobsTable } from '../../src/cli/commands/jobs.ts';
import { fittingLines } from '../../src/cli/commands/status.ts';
import { jobStateChanges, searchLines, showJobState, showTime, taskLine } from '../../src/cli/show/job-text.ts';
import type { ListedJob } from '../../src/cli/show/lists.ts';
import { resultsProgress } from '../../src/cli/show/pass.ts';
import * as terminal from '../../src/cli/show/terminal.ts';
import { commandIn } from '../../src/cli/words.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { jobTimeOf } from '../../src/job-information.ts';
import { printableJson } from '../../src/printable.ts';
import type { ResultSyncRow } from '../../src/store/rows.ts';
import { restConfig } from '../config/files.ts';
import { expectCases } from '../support/errors.ts';
import { closedAtEnd, startHttpServer } from '../support/wire-server.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const MIB = 1_048_576;

/** A line with the progress of results after so many seconds, on a terminal or not. */
function progressOf(
  isTTY: boolean,
  ...rows: (readonly [seconds: number, done: number, mib: number, wantedMib?: number])[]
) {
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 200 });
  const progress = resultsProgress(stream);
  for (const [seconds, done, mib, wanted] of rows) {
    const times = { startedAt: 1_000, updatedAt: 1_000 + seconds * 1_000, endedAt: null };
    const bytes = { bytes: mib * MIB, wantedBytes: wanted === undefined ? null : wanted * MIB };
    const row = { jobId: '501', ...times, ...bytes, wanted: 100, done, way: 'soap', fallback: null, arriving: [] };
    progress.show(row as unknown as ResultSyncRow);
  }
  progress.close();
  return String(stream.read() ?? '');
}

const NEVER = { creationTime: null, submitTime: null, startTime: null, endTime: null };
const JOB = { jobId: '501' as JobId, name: null, jobState: null, ...NEVER, watchState: null };

/** So many tasks, each with this message. */
const tasksOf = (count: number, errorMessage: string | null) =>
  Array.from({ length: count }, (_, at) => {
    const taskId = String(9_001 + at) as TaskId;
    return { taskId, name: null, taskState: null, startTime: null, endTime: null, errorMessage };
  });

/** What lines at the bottom of a terminal write at each step: lines that are shown, or what else happens. */
function bottomOf(...steps: readonly ('clear' | 'leave' | 'line' | readonly string[])[]) {
  const written: string[] = [];
  const stream = { isTTY: true, columns: 80, write: (text: string) => written.push(text) > 0 } as never;
  const bottom = new terminal.BottomLines(stream);
  return steps.map((step) => {
    if (step === 'line') bottom.write('line\n');
    else if (typeof step === 'string') bottom[step]();
    else bottom.show([...step]);
    return written.splice(0).join();
  });
}

/** The request for the health of a server, and what is found of its answer; LONG is a long name. */
async function healthBy(status: number, body: unknown) {
  const asked: string[] = [];
  const server = await startHttpServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization ?? 'without a session'}`);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status).end(text.replace('LONG', 'x'.repeat(10_000)));
  });
  const baseUrl = new URL(closedAtEnd(server).url).origin;
  const { config } = await restConfig({ service: { protocol: 'rest', baseUrl, path: '/heappe' } });
  const found = await healthOf(config, new AbortController().signal);
  return [...asked, ...found.map(({ mark, text, hint }) => `${mark}: ${text} (${hint})`)];
}

const FUNCTIONS: Readonly<Record<string, (...args: never[]) => unknown>> = {
  commandIn: (line: string) => commandIn(line.split(' ')),
  parseSince(text: string) {
    const found = parseSince(text, NOW);
    return found === undefined ? 'none' : new Date(found).toISOString();
  },
  terminalText: (line: string, colours = true) => terminal.terminalText(line, colours),
  forStderr(line: string, noColour: string, forceColour: string) {
    vi.stubEnv('NO_COLOR', noColour);
    vi.stubEnv('FORCE_COLOR', forceColour);
    return terminal.forStderr(line);
  },
  cutToColumns: terminal.cutToColumns,
  wrapToColumns: terminal.wrapToColumns,
  columnsOf: (stream: object, columns?: string) => String(terminal.columnsOf(stream, { COLUMNS: columns })),
  fitted: (columns: number, ...rows: string[][]) =>
    terminal.fitted({ head: ['task', 'file', 'bytes'], rows, numbers: ['bytes'] }, columns),
  showTime: (text: string) => showTime(jobTimeOf(text)),
  showJobState,
  taskLine: (name: string, taskState: string, errorMessage: string) =>
    taskLine({ taskId: '7' as TaskId, name, taskState, startTime: null, endTime: null, errorMessage }),
  searchLines: (by: string, searching: boolean, found: number) =>
    searchLines({ tasks: { found, by, searching, nextSearchAt: null, hint: null } } as never),
  progressOf,
  bottomOf,
  healthBy,
  fittingLines: (text: string, rows: number) => fittingLines({ jobs: 1, render: () => text }, rows),
  changes(...states: (readonly [state: string | null, tasks?: number, message?: string] | null)[]) {
    const change = jobStateChanges();
    return states.map((state) => {
      const [jobState = null, count = 0, message = null] = state ?? [];
      const reported = tasksOf(count, message);
      return change(state === null ? undefined : { ...JOB, jobState, tasks: { reported } });
    });
  },
  jobsTable: (columns: number, ...jobs: readonly (readonly [tasks: number, message: string | null, object?])[]) => {
    const listed = jobs.map(
      ([count, message, more = {}]): ListedJob => ({ ...JOB, tasks: tasksOf(count, message), ...more }),
    );
    return jobsTable(listed, columns).trimEnd().split('\n');
  },
};

it('each function returns what is written below its arguments', async () => {
  vi.stubEnv('TZ', 'Asia/Tokyo');
  vi.stubEnv('LC_ALL', 'C.UTF-8');
  onTestFinished(() => void vi.unstubAllEnvs());
  await expectCases(path.join(import.meta.dirname, 'functions.txt'), async (written) => {
    const [, name = '', args = ''] = /^(\w+) ?(.*)$/.exec(written) ?? [];
    const value = await FUNCTIONS[name]?.(...(JSON.parse(`[${args}]`) as never[]));
    return [value].flat().map((each) => printableJson(each ?? null));
  });
});

it('a table of 20,000 rows is drawn like a short one', () => {
  const rows = Array.from({ length: 20_000 }, (_, row) => [String(row), 'stdout', `${row}00`]);
  const lines = terminal.fitted({ head: ['task', 'file', 'bytes'], rows, numbers: ['bytes'] }, 80);
  expect(lines).toHaveLength(20_001);
  expect(new Set(lines.map(({ length }) => length)).size).toBe(1);
  expect(lines.slice(1).map((line) => line.split(' ')[0])).toEqual(rows.map(([task]) => task));
});
