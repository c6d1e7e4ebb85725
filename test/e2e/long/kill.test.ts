/**
 * The promise, on the real program: killed with SIGKILL at the steps of a new generation, each time after one more kill in
 * the midst of appending, nothing that a mirror had is lost, and no generation is made up.
 */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { KILL_ROUNDS, keepEvidenceIfFailed, randomFrom } from '../../support/e2e-kills.ts';
import { Place } from '../../support/e2e-place.ts';
import { RewrittenFile } from '../../support/e2e-rewritten.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

const KEPT = 3;

it.for(KILL_ROUNDS)(
  'keeps what is rewritten over $kills kills at its steps (JOBTAIL_SEED=$seed)',
  PATIENCE,
  async (round, context) => {
    const place = Place.make(context);
    const { sandbox, job, task, mirror } = await submitQuietJob(place);
    place.configure(sandbox, {
      watch: [requestOf(job)],
      mirror: { directory: place.mirror, keepGenerations: KEPT },
      poll: { minIntervalSeconds: 0.05, maxIntervalSeconds: 0.2 },
      results: { enabled: false },
    });
    keepEvidenceIfFailed(place, context, round.seed);
    const file = new RewrittenFile(place, task.files.stdout, mirror, KEPT);
    const random = randomFrom(round.seed);
    const aims = stepsOf(file);
    file.rewrite();
    await untilGrown(place);
    file.check();

    const hits = new Map<string, number>();
    let [kills, uncommitted] = [0, 0];
    const hit = () => [...hits.values()].reduce((sum, count) => sum + count, 0);
    for (; hit() < round.kills; kills++) {
      expect(kills, 'kills for so few that came at a step').toBeLessThan(10 + 4 * round.kills);
      // In the midst of the first bytes of a generation, or once they are committed.
      if (file.isMirrored || random() < 0.5) file.rewrite();
      await untilGrown(
        place,
        file,
        random() < 0.7 ? (name) => name === 'stdout.log' && file.mirrorBytes > 0 : undefined,
      );
      file.check();
      const { position, rotation } = file.committed();
      if (rotation === null && file.mirrorBytes > position) uncommitted++;

      file.rewrite();
      await untilGrown(place, file, aims[Math.floor(random() * aims.length)]);
      const step = file.check();
      if (step !== undefined) hits.set(step, (hits.get(step) ?? 0) + 1);
    }

    const program = await place.run();
    expect(await place.agent('unwatch', job.jobId)).toMatchObject({ code: 0, stderr: '' });
    await place.verified(job.jobId);
    program.signal('SIGTERM');
    await program.ended;
    file.checkEnd();
    const found = [...hits].map(([step, count]) => `${count} ${step}`).join(', ');
    process.stdout.write(
      `JOBTAIL_SEED=${round.seed}: ${kills} rewrites, killed ${found}; ${uncommitted} uncommitted\n`,
    );
  },
);

/** By what the mirror directory shows: the copy appears, it has its number, the mirror is cut. */
function stepsOf(file: RewrittenFile): ((name: string) => boolean)[] {
  return [
    (name) => name.endsWith('.keeping'),
    (name) => name.endsWith('.1'),
    (name) => name === 'stdout.log' && file.mirrorBytes === 0,
  ];
}

/** Starts the agent and kills it when a change in the mirror directory is the one that is meant, or when a mirror grew. */
async function untilGrown(place: Place, file?: RewrittenFile, isMeant: (name: string) => boolean = () => false) {
  const program = place.start(['run']);
  const watcher =
    file &&
    fs.watch(file.directory, (_, name) => {
      if (name !== null && isMeant(name)) program.signal('SIGKILL');
    });
  try {
    await until('a step', () => program.end !== undefined || program.log.some(({ msg }) => msg === 'grown'));
    expect(await program.kill(), 'the agent runs until it is killed').toMatchObject({ code: null, signal: 'SIGKILL' });
  } finally {
    watcher?.close();
  }
}
