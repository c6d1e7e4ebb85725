/** A view in this process, of one job with these live files, in a browser. */
import type { LiveFileName } from '../../src/job.ts';
import { startBrowser, ViewPage } from './view-browser.ts';
import { TASK, ViewPlace } from './view-place.ts';

export async function shown(
  context: Parameters<typeof startBrowser>[0],
  files: Partial<Record<LiveFileName, string>>,
  fill = (_: ViewPlace) => {},
) {
  const place = await ViewPlace.serve({ agentPid: process.pid });
  place.addJob();
  for (const [file, content] of Object.entries(files)) place.write(file as LiveFileName, content);
  fill(place);
  const view = await ViewPage.open(await startBrowser(context), place.view.link());
  const { page } = view;
  const stdout = () => view.pane(`stdout of task ${TASK}`);
  const hash = () => page.evaluate('location.hash') as Promise<string>;
  return { place, view, page, keyboard: page.keyboard, stdout, hash };
}
