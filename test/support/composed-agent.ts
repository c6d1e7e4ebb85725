/** The heart as the program puts it together, over a service in memory. */
import { EventEmitter } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { ALONE } from '../../src/agent/ownership.ts';
import type { Log } from '../../src/agent/ports/host.ts';
import type { JobService, Remote } from '../../src/agent/ports/server.ts';
import { loadConfig } from '../../src/config/load.ts';
import { buildEngine } from '../../src/daemon/compose.ts';
import type { Observer } from '../../src/daemon/observer.ts';
import { openOwnStore } from '../../src/daemon/own-state.ts';
import { type JobId, LIVE_FILE_NAMES } from '../../src/job.ts';
import { logLine } from '../../src/printable.ts';
import type { WatchRequest, WatchState } from '../../src/store/rows.ts';
import type { Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/system/clock.ts';
import { MINIMAL } from '../config/files.ts';
import { JOB } from './engine.ts';
import type { HeldClock } from './held-clock.ts';
import { temporaryDirectory } from './temp-directory.ts';

export interface ComposedAgent {
  readonly jobService?: JobService;
  /** The machine's by default. */
  readonly clock?: HeldClock;
  /** Lines of the configuration behind its minimal ones. */
  readonly sections?: string;
  /** For jitter; any number by default. */
  readonly random?: () => number;
  /** For the notifications; none by default. */
  readonly catchUp?: (store: Store) => Promise<void>;
  /** `asked`: as a command that serves the state. */
  readonly follows?: 'asked';
}

const QUICK = `poll: {minIntervalSeconds: 0.1, maxIntervalSeconds: 0.2}
results: {intervalSeconds: 1}
`;

const MAX_STOP_MS = 10_000;

/** Follows nothing yet. What it warns of, says, and has counted, is gathered. */
export async function startAgent(
  remote: Remote,
  { jobService, clock, sections = QUICK, random, catchUp, follows }: ComposedAgent = {},
) {
  const directory = temporaryDirectory();
  const configFile = path.join(directory, 'config.yaml');
  fs.writeFileSync(
    configFile,
    `${MINIMAL.replace('auth:', '  requestsPerMinute: 1000000\nauth:')}mirror: {directory: ${directory}/mirror}
state: {directory: ${directory}/state}
${sections}`,
  );
  const config = await loadConfig(configFile);
  const warnings: string[] = [];
  const said: string[] = [];
  const details: string[] = [];
  const detail = (_: object, phrase: string) => void details.push(phrase);
  const gather = (lines: string[]) => (fields: object, phrase: string) =>
    void lines.push(logLine({ ...fields }, phrase));
  const log: Log = { debug: detail, info: gather(said), warn: gather(warnings), error: gather(warnings) };
  const owned = openOwnStore(config, log);
  const { store, transfers } = owned;
  const observed: string[] = [];
  const observer: Observer = new EventEmitter();
  for (const name of ['appended', 'tasksFound', 'jobStatesRead'] as const)
    observer.on(name, (...of: readonly unknown[]) => void observed.push([name, ...of].join(' ')));
  /** Jobs that another agent owns. */
  const theirs = new Set<JobId>();
  const ownership = { ...ALONE, owns: (jobId: JobId) => !theirs.has(jobId) };
  const doCatchUp = async () => {
    details.push('notified');
    await catchUp?.(store);
  };
  const newAgent = () => {
    const parts = {
      ...{ config, store, transfers, remote, log, observer, ownership },
      ...(clock && { clock }),
      ...(random && { random }),
      ...(follows && { follows }),
    };
    return buildEngine({ ...parts, jobService: jobService ?? null, catchUp: doCatchUp }).agent;
  };
  let agent = newAgent();
  const stop = async () => {
    const begunAt = clock?.monotonic() ?? 0;
    await (clock === undefined ? agent.stop() : clock.passWhile(agent.stop()));
    // It ends what has no response.
    expect((clock?.monotonic() ?? 0) - begunAt, 'the time of a stop').toBeLessThanOrEqual(MAX_STOP_MS);
  };
  onTestFinished(async () => {
    await stop();
    owned.close();
    // What an agent waits for ends with it.
    if (clock !== undefined) expect(clock.timers).toBe(0);
  });
  agent.start([]);
  /** Another agent takes its place, on the same state. */
  const restart = async () => {
    await stop();
    agent = newAgent();
    agent.start([]);
    return agent;
  };
  /** As a command adds a job, with all that it has; `as`: its state when the agent first reads it. */
  const watch = (changes: Partial<WatchRequest> = {}, as: WatchState = 'watched') => {
    const usual = { jobId: JOB, tasks: null, files: LIVE_FILE_NAMES, results: true, settleAfterMs: null } as const;
    const { now } = clock ?? systemClock;
    const request = { ...usual, source: 'command', ...changes } as const;
    store.transaction(() => {
      store.jobs.watch(request, now());
      store.jobs.setState(request.jobId, as);
    });
    agent.refresh();
  };
  const noted = { warnings, said, details, observed };
  return { agent, store, watch, ...noted, theirs, restart, mirrorDirectory: config.mirror.directory };
}
