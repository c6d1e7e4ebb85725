/** A job whose standard output grows, and an agent with a view of it in a browser. */
import fs from 'node:fs';
import { requestOf, submitQuietJob } from './e2e-job.ts';
import { Place } from './e2e-place.ts';
import { linkOf, startBrowser, ViewPage, viewSection } from './view-browser.ts';

export const LANGUAGES = [
  'Příliš žluťoučký kůň úpěl ďábelské ódy nad hladinou řeky.',
  'نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر',
  'いろはにほへと散りぬるを 計算ノードは静かに動いている。',
  'plain text & <markup> "quoted"\ttabbed',
  'solver ✓ converged 🚀 after 👩🏽‍🔬',
];

/** `count` lines in many languages, numbered from `from` on. */
export const lines = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => `${from + index} ${LANGUAGES[(from + index) % LANGUAGES.length]}\n`).join(
    '',
  );

/** An agent with a view of a quiet job whose stdout has this content. */
export async function viewedJob(context: Parameters<typeof Place.make>[0], content: string) {
  const place = Place.make(context);
  const { sandbox, job, task, mirror } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, content);
  place.configure(sandbox, { watch: [requestOf(job)], results: { enabled: false }, ...(await viewSection()) });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  const link = await linkOf(place);
  const view = await ViewPage.open(await startBrowser(context), link);
  const label = `stdout of task ${task.taskId}`;
  return {
    place,
    job,
    task,
    mirror,
    agent,
    view,
    link,
    label,
    hash: `#/job/${job.jobId}/live?file=${task.taskId}/stdout`,
  };
}
