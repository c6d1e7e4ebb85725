/** A state with one watched job and its mirrors, written as the engine writes them, and a reader of notifications on it. */
import fs from 'node:fs';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import type { JobId, LiveFileKey, TaskId } from '../../src/job.ts';
import type { JobInformation } from '../../src/job-information.ts';
import { UnderWay } from '../../src/notify/deliveries.ts';
import { type NotifyHttp, notifyHttp } from '../../src/notify/http.ts';
import { Notifications } from '../../src/notify/notifications.ts';
import type { RuleSettings } from '../../src/notify/rules.ts';
import { logLine } from '../../src/printable.ts';
import { Secrets } from '../../src/redact.ts';
import { liveParts } from '../../src/safe-names.ts';
import type { DeliveryRow } from '../../src/store/outbox.ts';
import type { WatchState } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { newState } from '../support/engine.ts';
import { HeldClock } from '../support/held-clock.ts';
import { jobOf } from '../support/model-remote.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

export const JOB = '501' as JobId;
export const KEY: LiveFileKey = { taskId: '9001' as TaskId, file: 'stdout' };
/** Former generations. */
export const KEEP = 3;

/** Where nothing listens: all deliveries wait. */
const NOWHERE = 'http://127.0.0.1:9/';

export const ruleOf = (settings: Partial<RuleSettings>): RuleSettings => ({
  ...{ on: ['match'], jobs: ['**'], files: ['**'], match: null },
  ...{ command: null, url: null, mail: null, secretFile: null, proxy: null, caFile: null },
  ...(settings.command == null && settings.mail == null ? { url: NOWHERE } : {}),
  ...settings,
});

export class NotifyPlace {
  readonly clock = new HeldClock();
  readonly store: Store;
  readonly mirrors: string;
  readonly warnings: string[] = [];
  /** What was sent, and what went wrong, in their order. */
  readonly trace: string[] = [];
  /** All of the log. */
  readonly lines: (readonly [level: string, message: string, fields: object])[] = [];
  degraded: string | undefined;
  /** A pattern that takes too long. */
  slow: string | undefined;
  hasJobService = true;
  /** In place of connections. */
  http: NotifyHttp | undefined;
  /** Those of the next start. */
  rules: readonly RuleSettings[];
  #kill: () => void = () => {};

  constructor(directory: string, rules: readonly RuleSettings[]) {
    this.rules = rules;
    this.mirrors = path.join(directory, 'mirror');
    const state = newState(path.join(directory, 'state'));
    this.store = new Store({ directory: state, service: 'x', owner: true, now: this.clock.now });
  }

  watch(jobId: JobId = JOB, seenState: string | null = null, results = true): void {
    const order = { jobId, seenState, results, settleAfterMs: null, source: 'command' } as const;
    const files = { tasks: [KEY.taskId], files: [KEY.file] };
    this.store.transaction(() => this.store.jobs.watch({ ...order, ...files }, this.clock.now()));
    fs.mkdirSync(path.dirname(this.mirror(jobId)), { recursive: true });
    fs.writeFileSync(this.mirror(jobId), '');
  }

  mirror(jobId: JobId = JOB): string {
    return path.join(this.mirrors, ...liveParts(jobId, KEY));
  }

  report(state: string, more: Partial<JobInformation> = {}, jobId: JobId = JOB): void {
    const now = this.clock.now();
    const information = { ...jobOf(jobId, state), ...more };
    this.store.jobInformation.save({ jobId, information, since: now, reportedAt: now });
  }

  setState(state: WatchState, jobId: JobId = JOB): void {
    this.store.jobs.setState(jobId, state);
  }

  stall(stalledAt: number | null): void {
    const end = { polledAt: 9, grownAt: null, refused: 0, failures: 0, error: null, stalledAt };
    this.store.jobs.endRun(JOB, end);
  }

  grow(text: string | Buffer, jobId: JobId = JOB): void {
    fs.appendFileSync(this.mirror(jobId), text);
    this.commit(Buffer.byteLength(text), jobId);
  }

  commit(bytes: number, jobId: JobId = JOB): void {
    const row = this.#row(jobId);
    this.store.liveFiles.save({ ...row, position: row.position + bytes, grownAt: this.clock.now() });
  }

  /** Each step of a rotation, with `between` after it. */
  async rotate(kind: 'truncated' | 'rewritten', between: () => Promise<void>): Promise<void> {
    const row = this.#row(JOB);
    this.store.liveFiles.save({ ...row, rotation: 'copying' });
    await between();
    for (let number = KEEP; number >= 1; number--) {
      const older = number === 1 ? this.mirror() : `${this.mirror()}.${number - 1}`;
      if (!fs.existsSync(older)) continue;
      if (number === 1) fs.copyFileSync(older, `${this.mirror()}.1`);
      else fs.renameSync(older, `${this.mirror()}.${number}`);
    }
    this.store.liveFiles.save({ ...row, rotation: 'copied' });
    await between();
    fs.truncateSync(this.mirror());
    await between();
    const generation = row.generation + 1;
    const mismatch = { kind, at: 0, reason: 'it begins otherwise', generation, seenAt: 1 };
    const mismatches = [...row.mismatches, mismatch].slice(-10);
    this.store.liveFiles.save({ ...row, position: 0, generation, mismatches });
    await between();
  }

  /** Another process takes over, killed after so many `transactions`. `isSame`: only its configuration is another. */
  start(transactions = Number.POSITIVE_INFINITY, underWay = new UnderWay(), isSame = false): Notifications {
    if (!isSame) this.#kill();
    let left = transactions;
    let isAlive = true;
    this.#kill = () => {
      isAlive = false;
    };
    const store = new Proxy(this.store, {
      get: (target, name) => {
        const found = Reflect.get(target, name) as unknown;
        if (name !== 'transaction') return typeof found === 'function' ? found.bind(target) : found;
        return (work: () => unknown) => {
          if (!isAlive || left-- <= 0) throw new Error('killed');
          return target.transaction(work);
        };
      },
    });
    const clock = {
      now: this.clock.now,
      monotonic: this.clock.monotonic,
      timer: (ms: number, callback: () => void) => this.clock.timer(ms, () => isAlive && callback()),
    };
    const logged = (level: string, messages: string[] = []) => {
      return (fields: object, message: string) => {
        messages.push(message);
        this.lines.push([level, message, fields]);
        if (level !== 'info') this.trace.push(`${this.seconds}: ${level} ${logLine({ ...fields }, message)}`);
      };
    };
    const [info, warn] = [logged('info'), logged('warn', this.warnings)];
    const log = { debug: logged('debug'), info, warn, error: logged('error') };
    const mirror = { directory: this.mirrors, keepGenerations: KEEP, minFreeBytes: 0 };
    const config = { notify: [...this.rules], mirror, fleet: { name: 'test' } } as unknown as Config;
    const notifications = new Notifications({
      ...{ config, store, clock, log, http: this.http ?? notifyHttp({ service: { proxy: null } }) },
      degraded: () => this.degraded,
      hasJobService: this.hasJobService,
      secrets: new Secrets(),
      matching: (pattern, lines) => this.matches(pattern, lines),
      underWay,
    });
    notifications.start();
    return notifications;
  }

  /** In this thread: real threads end at no time of a held clock. */
  matches = async (pattern: string, lines: readonly string[]): Promise<number[] | undefined> => {
    if (pattern === this.slow) return undefined;
    const expression = new RegExp(pattern);
    return lines.flatMap((line, index) => (expression.test(line) ? [index] : []));
  };

  get seconds(): number {
    return this.clock.monotonic() / 1_000;
  }

  /** Time for one more reading. */
  tick(): Promise<void> {
    return this.clock.pass(1_000);
  }

  /** What waits, without what is random. */
  get waiting(): readonly DeliveryRow['event'][] {
    return this.store.outbox.all().map(({ event }) => event);
  }

  /** `type`, how often, and what for. */
  get shown(): string[] {
    return this.waiting.map(({ type, count, line, text, reason }) =>
      [type, count > 1 ? `x${count}` : '', line, text, reason]
        .filter((part) => part !== undefined && part !== '')
        .join(' '),
    );
  }

  close(): void {
    this.#kill();
    this.store.close();
  }

  #row(jobId: JobId) {
    const row = this.store.liveFiles.get(jobId, KEY);
    if (row === undefined) throw new Error('it is not watched');
    return row;
  }
}

/** One that ends with the test. */
export function placeWith(...rules: readonly RuleSettings[]): NotifyPlace {
  const place = new NotifyPlace(temporaryDirectory(), rules);
  onTestFinished(() => place.close());
  return place;
}
