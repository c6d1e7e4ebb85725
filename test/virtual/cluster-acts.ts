/** What a job writes by chance. */
import { LIVE_FILE_NAMES } from '../../src/job.ts';
import type { Chance } from './chance.ts';
import type { SimulatedJob } from './cluster.ts';

/** One of its files grows, or begins anew. */
export function writeSome({ tasks }: SimulatedJob, chance: Chance): void {
  const task = chance.any(tasks);
  if (task === undefined) return;
  const file = task.files[chance.among(LIVE_FILE_NAMES)];
  if (file.contents.length > 0 && chance.is(0.12)) file.rewrite(chance.whole(0, 12));
  else file.append(chance.is(0.1) ? chance.whole(50, 300) : chance.whole(1, 8));
}

export function writeResult(job: SimulatedJob, chance: Chance, now: number): void {
  const name = `/out/result-${chance.whole(1, 4)}.dat`;
  const size = chance.is(0.1) ? chance.whole(20_000, 90_000) : chance.whole(0, 3_000);
  const times = job.results.get(name)?.contents.length ?? 0;
  job.result(name, 'file', now, Buffer.alloc(size, `${job.id} ${name} ${times}\n`));
}
