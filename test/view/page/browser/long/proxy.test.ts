/** The page behind a reverse proxy that gives it a path of its own. */
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import { expect, it } from 'vitest';
import { freePort } from '../../../../../simulator/free-port.ts';
import { requestOf, submitQuietJob } from '../../../../support/e2e-job.ts';
import { Place } from '../../../../support/e2e-place.ts';
import { needs } from '../../../../support/needs.ts';
import { linkOf, startBrowser, ViewPage } from '../../../../support/view-browser.ts';

const PREFIX = '/site/jobs/';

it('behind a path of a proxy it works as without one', needs('chromium'), async (context) => {
  const place = Place.make(context);
  const { sandbox, job, task } = await submitQuietJob(place);
  const [port, proxyPort] = [await freePort(), await freePort()];
  const asked: string[] = [];
  const proxy = http.createServer(({ url = '', method, headers }, response) => {
    asked.push(url);
    if (!url.startsWith(PREFIX)) return response.writeHead(404).end();
    const path = `/${url.slice(PREFIX.length)}`;
    const request = http.request({ host: '127.0.0.1', port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.on('error', () => response.destroy());
    response.on('close', () => request.destroy());
    return request.end();
  });
  proxy.listen(proxyPort, '127.0.0.1');
  await once(proxy, 'listening');
  context.onTestFinished(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  const publicUrl = `http://localhost:${proxyPort}${PREFIX}`;
  fs.writeFileSync(task.files.stdout, 'first\n');
  place.configure(sandbox, {
    watch: [requestOf(job)],
    results: { enabled: false },
    view: { listen: `127.0.0.1:${port}`, publicUrl },
  });
  await place.run();
  await place.mirrored(job, 'stdout');
  const link = await linkOf(place);
  expect(link.startsWith(publicUrl)).toBe(true);
  const view = await ViewPage.open(await startBrowser(context), link);
  await view.page.locator('.job-link').click();
  const pane = await view.pane(`stdout of task ${task.taskId}`);
  fs.appendFileSync(task.files.stdout, 'second\n');
  await pane.getByText('second', { exact: true }).waitFor();
  // What a browser asks of every site that names no icon, as the link with the token does.
  expect(asked.filter((url) => !url.startsWith(PREFIX) && url !== '/favicon.ico')).toEqual([]);
  expect(view.wrongs).toEqual([]);
});
