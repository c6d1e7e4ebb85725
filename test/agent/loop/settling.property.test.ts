/** When a job may be settled, over histories of what is reported, what comes, and restarts. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { JobStage } from '../../../src/agent/loop/job-stage.ts';
import type { JobId } from '../../../src/job.ts';
import type { JobPhase } from '../../../src/job-information.ts';
import type { JobInformationRow, JobRow } from '../../../src/store/rows.ts';
import type { Clock } from '../../../src/system/clock.ts';
import { jobOf } from '../../support/model-job-service.ts';
import { numRuns } from '../../support/property-runs.ts';

const MINUTE_MS = 60_000;
const WALL = Date.UTC(2026, 0, 1);
const SETTLE_MS = 30 * MINUTE_MS;

const JOB = '501' as JobId;
const WORDS = { active: 'Running', over: 'Finished' } as const;
const wordOf = (phase: JobPhase | undefined) => (phase === undefined ? null : WORDS[phase]);

type Step =
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'reported'; readonly phase: JobPhase | undefined }
  /** A poll that began so long ago; `isAnswered`: the service was asked for a file. */
  | { readonly kind: 'poll'; readonly tookMs: number; readonly grew: boolean; readonly isAnswered: boolean }
  | { readonly kind: 'fail' }
  | { readonly kind: 'restart' };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('pass' as const), ms: fc.oneof(fc.nat(20_000), fc.nat(20 * MINUTE_MS)) }),
  fc.record({ kind: fc.constant('reported' as const), phase: fc.constantFrom('active', 'over', 'over', undefined) }),
  fc.record({
    ...{ kind: fc.constant('poll' as const), tookMs: fc.nat(5_000) },
    ...{ grew: fc.boolean(), isAnswered: fc.boolean() },
  }),
  fc.constant({ kind: 'fail' as const }),
  fc.constant({ kind: 'restart' as const }),
);

/** What a test knows without the code: since when the job is over and brought nothing, and the polls since then. */
class World {
  now = 0;
  grownAt: number | null = null;
  phase: JobPhase | undefined;
  /** Since when that is reported. */
  phaseSince = 0;
  reportedAt = Number.NEGATIVE_INFINITY;
  overSince = 0;
  quietSince = 0;
  polls = 0;
  /** Whether a report came since the last start. */
  isConfirmed = false;
  stage: JobStage;

  constructor() {
    this.stage = this.start();
  }

  start(): JobStage {
    const row: JobRow = {
      ...{ jobId: JOB, source: 'mine', state: 'watched', results: false, settleAfterMs: SETTLE_MS },
      ...{ stallAfterMs: null, stalledAt: null },
      ...{ polledAt: null, refused: 0, failures: 0, error: null, revision: 1 },
      ...{ watchedAt: WALL, grownAt: this.grownAt === null ? null : WALL + this.grownAt },
    };
    // A process has a clock of its own, which knows nothing of the time before.
    const begun = this.now;
    const reportedAt = WALL + this.phaseSince;
    const before: JobInformationRow = {
      jobId: JOB,
      information: jobOf(JOB, wordOf(this.phase)),
      since: reportedAt,
      reportedAt,
    };
    const clock: Clock = {
      now: () => WALL + this.now,
      monotonic: () => this.now - begun,
      timer: () => () => {},
    };
    this.#begun = begun;
    const stage = new JobStage(clock);
    stage.follow(row, this.reportedAt < 0 ? undefined : before);
    return stage;
  }

  #begun = 0;

  do(step: Step): void {
    switch (step.kind) {
      case 'pass':
        this.now += step.ms;
        break;
      case 'reported':
        if (step.phase === 'over' && this.phase !== 'over') this.wait();
        if (step.phase !== this.phase) this.phaseSince = this.now;
        this.phase = step.phase;
        this.reportedAt = this.now;
        this.isConfirmed = true;
        this.stage.report(wordOf(step.phase));
        break;
      case 'poll': {
        const beganAt = Math.max(this.#begun, this.now - step.tookMs);
        if (step.grew) {
          this.grownAt = this.now;
          this.wait();
          this.quietSince = this.now;
          this.stage.endQuiet();
        } else {
          if (beganAt >= this.overSince && (step.isAnswered || this.phase === 'over')) this.polls += 1;
          this.stage.polled(beganAt - this.#begun, step.isAnswered);
        }
        break;
      }
      case 'fail':
        this.wait();
        this.quietSince = this.now;
        this.stage.endQuiet();
        break;
      case 'restart':
        this.isConfirmed = false;
        this.stage = this.start();
        this.quietSince = this.grownAt ?? 0;
        this.overSince = Math.max(this.phaseSince, this.grownAt ?? 0);
        this.polls = 0;
        if (this.reportedAt >= 0) this.reportedAt = this.now;
        break;
    }
  }

  wait(): void {
    this.overSince = this.now;
    this.polls = 0;
  }
}

it('is only when it was over for a minute and two polls without growth, or quiet for as long as it was to be', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const world = new World();
      for (const next of steps) {
        world.do(next);
        const wasOver = world.now - world.overSince >= MINUTE_MS && world.polls >= 2 && world.isConfirmed;
        const wasQuiet = world.now - world.quietSince >= SETTLE_MS && world.polls >= 2;
        const isReported = world.now - world.reportedAt < 10 * MINUTE_MS;
        if (world.phase === 'over') expect(world.stage.isSettled).toBe(wasOver);
        else if (world.phase === 'active' && isReported) expect(world.stage.isSettled).toBe(false);
        else if (world.stage.isSettled) expect(wasQuiet).toBe(true);
      }
      // Whatever was before, two polls and a minute lead to its end.
      world.do({ kind: 'reported', phase: 'over' });
      for (let poll = 0; poll < 2; poll++) world.do({ kind: 'poll', tookMs: 0, grew: false, isAnswered: false });
      world.do({ kind: 'pass', ms: MINUTE_MS });
      expect(world.stage.isSettled).toBe(true);
    }),
    numRuns(2_000),
  );
});
