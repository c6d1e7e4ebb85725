/** The periodic work of an agent of a fleet: acquires and releases jobs, executes commands, writes changed rows. */

import { asJobtailError } from '../errors.ts';
import { type FleetSummary, idsOf, type LeasedJob } from './agents/agents.ts';
import type { Readiness } from './agents/readiness.ts';
import { Execution, type Settled } from './commands/commands.ts';
import { Upkeep } from './commands/upkeep.ts';
import { Giving, MAX_GIVEN, MAX_TAKEN, Taking } from './owners/balance.ts';
import { type FleetContext, Following } from './owners/following.ts';

const MAX_COMMANDS = 500;
const WRITE_EVERY_MS = 2_000;
/** Commands come with a notification; this finds one that was missed. */
const COMMANDS_EVERY_MS = 15_000;

export class Rounds {
  readonly following: Following;
  readonly taking: Taking;
  readonly #membership: FleetContext;
  readonly #giving: Giving;
  readonly #execution: Execution;
  readonly #upkeep: Upkeep;
  #writtenAt = 0;
  #commandsAt = Number.NEGATIVE_INFINITY;

  constructor(membership: FleetContext, readiness: Readiness) {
    this.#membership = membership;
    this.#execution = new Execution(membership.store, () => membership.clock.now());
    this.#upkeep = new Upkeep(membership);
    this.following = new Following(membership, (jobId) => this.#execution.forgetJob(jobId));
    this.taking = new Taking(membership, this.following, readiness);
    this.#giving = new Giving(membership, this.following, this.#execution);
  }

  noticed(): void {
    this.#commandsAt = Number.NEGATIVE_INFINITY;
    this.#upkeep.noticed();
  }

  /** Runs a round; returns whether the next one is due at once: more jobs wait. */
  async round(summary: FleetSummary | undefined, isDraining: boolean, mayAcquire: boolean): Promise<boolean> {
    const { follower } = this.#membership.attached;
    if (follower === undefined) return false;
    const taken = isDraining || !mayAcquire ? 0 : await this.taking.take(summary);
    const brought = await this.taking.bring();
    const failure = await this.#execute(brought).then(() => undefined, asJobtailError);
    // Without the database no job can be handed off: it would be left and taken again in each round.
    if (failure?.code === 'fleet') throw failure;
    if (failure === undefined) this.taking.follow(brought);
    await this.#write();
    await this.#giving.finish();
    if (isDraining) await this.#giving.give(MAX_GIVEN);
    else if (summary !== undefined) await this.#giving.giveExcess(summary);
    await this.#upkeep.round(follower);
    if (failure !== undefined) throw failure;
    return taken === MAX_TAKEN;
  }

  /** Executes commands; their changes are in the database before the command is reported as done. */
  async #execute(brought: readonly LeasedJob[]): Promise<void> {
    const { joined, leased, member, clock } = this.#membership;
    const isAsked = this.#execution.asked.length > 0 || brought.length > 0;
    const now = clock.monotonic();
    if (!isAsked && now - this.#commandsAt < COMMANDS_EVERY_MS) return;
    // What fails is tried again in the next round.
    this.#commandsAt = Number.NEGATIVE_INFINITY;
    const open = await joined.commands.openOf(member.name, this.#execution.asked, MAX_COMMANDS);
    // Jobs whose rows are still to arrive are left out: they would start again from the beginning.
    const here = [...leased.all('following'), ...brought.filter((job) => leased.get(job.jobId) === job)];
    const isHere = new Set(idsOf(here));
    const mine = open.filter(({ jobId }) => isHere.has(jobId));
    const applied = this.#execution.apply(mine);
    await this.#settle([...applied, ...this.#execution.answered()]).catch((thrown: unknown) => {
      // All of them again, in their order: one that is left out would be undone by one before it.
      this.#execution.forget(applied);
      throw thrown;
    });
    // The rest is checked again when their jobs are here: no notification follows.
    if (mine.length === open.length) this.#commandsAt = now;
  }

  async #settle(settled: readonly Settled[]): Promise<void> {
    if (settled.length === 0) return;
    const { joined, leased, handover, attached } = this.#membership;
    const jobs = [...new Set(idsOf(settled))].flatMap((jobId) => leased.get(jobId) ?? []);
    if (jobs.length > 0)
      await handover.writeAnd(jobs, async (sql, owned) => {
        const names = new Set(idsOf(owned));
        const written = settled.filter(({ jobId }) => names.has(jobId));
        await joined.commands.settle(sql, written);
      });
    this.#execution.forget(settled.filter(({ answer }) => answer !== null));
    for (const job of jobs) handover.noteTaken(job);
    attached.follower?.refresh();
  }

  async #write(): Promise<void> {
    const { leased, handover, clock } = this.#membership;
    const now = clock.monotonic();
    if (now - this.#writtenAt < WRITE_EVERY_MS) return;
    await handover.write(leased.all('following'));
    this.#writtenAt = now;
  }
}
