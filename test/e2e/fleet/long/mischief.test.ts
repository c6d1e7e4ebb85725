/**
 * Rounds of random mischief: agents are killed, stopped, cut off, the database restarts, agents and jobs come and go, files
 * are rewritten. JOBTAIL_FLEET_ROUNDS is their number (25); JOBTAIL_SEED repeats them as far as possible.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { until } from '../../../support/e2e-until.ts';
import { Fleet } from '../../../support/fleet.ts';
import { drawMischief, type MischiefParts, pick, randomFrom } from '../../../support/fleet-mischief.ts';
import { needsFleet } from '../../../support/fleet-node.ts';
import { expectEqual, expectSound } from '../../../support/fleet-proof.ts';

const ROUNDS = Number(process.env['JOBTAIL_FLEET_ROUNDS'] ?? 25);
const SEED = Number(process.env['JOBTAIL_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const PATIENCE_MS = 120_000 + ROUNDS * 15_000;
/** So many harms go on at the same time, at most; at least one agent of three is well. */
const MAX_HARMS = 2;
/** From one to the next; longer than the lease at times. */
const PAUSES_MS = [200, 500, 1_000, 2_000, 3_000, 12_000];

it(`${ROUNDS} rounds of mischief (JOBTAIL_SEED=${SEED})`, {
  timeout: PATIENCE_MS,
  ...needsFleet(),
}, async (context) => {
  const random = randomFrom(SEED);
  const fleet = await Fleet.make(context, { jobs: 30, orderedBy: 'commands' });
  fleet.grow();
  await fleet.run();
  const parts: MischiefParts = {
    fleet,
    random,
    watched: new Set(fleet.jobs.map(({ jobId }) => jobId)),
    ending: new Map(),
    mend: new Map(),
  };
  const done: string[] = [];
  context.onTestFailed(() => void process.stderr.write(`${done.join('\n')}\n`));
  for (let round = 1; round <= ROUNDS; round++) {
    const { name, run } = drawMischief(random);
    const what = await run(parts);
    done.push(`${new Date().toISOString()} ${round}: ${name} ${what ?? '(not now)'}`);
    growSome(fleet, random);
    await sleep(pick(PAUSES_MS, random));
    growSome(fleet, random);
    await expectSound(fleet, `round ${round}`);
    if (parts.mend.size >= MAX_HARMS || (parts.mend.size > 0 && random(3) === 0)) {
      const [harmed = '', mend] = pick([...parts.mend], random) ?? [];
      await mend?.();
      parts.mend.delete(harmed);
      done.push(`${new Date().toISOString()} ${round}: mended ${harmed}`);
    }
  }
  for (const mend of parts.mend.values()) await mend();
  await expectPeace(parts);
  process.stdout.write(`JOBTAIL_SEED=${SEED}: ${ROUNDS} rounds, ${(await fleet.attempts()).length} attempts\n`);
});

/** All that is to be followed has an owner and is equal; nothing else is owned. */
async function expectPeace({ fleet, watched, ending }: MischiefParts): Promise<void> {
  await Promise.all(ending.values());
  const wrong = async () => {
    const owners = await fleet.owners();
    const without = [...watched].filter((jobId) => !owners.has(jobId));
    const beyond = [...owners].filter(([jobId]) => !watched.has(jobId)).map((each) => each.join(' of '));
    return [...without.map((jobId) => `${jobId} of none`), ...beyond];
  };
  await until('each job to have an owner, and no other', async () => (await wrong()).length === 0).catch(
    async (error: Error) => expect.fail(`${error.message}: ${(await wrong()).join(', ')}`),
  );
  for (const { program } of fleet.agents) expect(program.end).toBeUndefined();
  const jobs = fleet.jobs.filter(({ jobId }) => watched.has(jobId));
  const files = jobs.flatMap((job) => fleet.filesOf(job));
  for (const file of files) file.append(5);
  await expectEqual(fleet, files);
}

/** A few files; all of them in each round would be all that the machine does. */
function growSome(fleet: Fleet, random: (below: number) => number): void {
  for (let count = 0; count < 10; count++) pick(fleet.files, random)?.append(1 + random(20));
}
