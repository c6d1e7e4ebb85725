/** Who may see the page: a browser that was let in, and no process that listens where the view did. */
import fs from 'node:fs';
import http from 'node:http';
import { expect, it } from 'vitest';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { lines, viewedJob } from '../../../../support/view-jobs.ts';

it(
  'goes on after a restart, and gives what listens meanwhile nothing that opens the view',
  needs('chromium'),
  async (context) => {
    const { place, job, task, agent, view, link, label, hash } = await viewedJob(context, lines(0, 10));
    await view.show(hash);
    const pane = await view.pane(label);
    await pane.getByText(/^9 /).waitFor();
    const { port } = new URL(link);

    // Another user of the machine takes the port as soon as the agent has left it.
    const shown = new Set<string>();
    const asked: string[] = [];
    const thief = http.createServer(({ url = '', headers }, response) => {
      asked.push(url);
      for (const name of ['cookie', 'authorization']) if (headers[name] !== undefined) shown.add(String(headers[name]));
      // An answer of the kind that each request expects; a proof it has none.
      const isHello = url.startsWith('/api/hello');
      const body = isHello ? { start: 'x'.repeat(22), proof: 'x'.repeat(43) } : ['hello', { program: 'x', now: 1 }];
      response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
    });
    context.onTestFinished(() => void thief.close());
    agent.signal('SIGTERM');
    await until(
      'the port',
      () =>
        new Promise<boolean>((resolve) => {
          thief.once('error', () => resolve(false));
          thief.listen(Number(port), '127.0.0.1', () => resolve(true));
        }),
    );
    await view.page.getByText('has not proven to be the view').waitFor();
    await until('the requests of the page', () => asked.length > 2);
    // What a page of the thief at this address would find.
    const stored = (await view.page.evaluate(
      'Object.values(localStorage).concat(Object.values(sessionStorage), document.cookie)',
    )) as string[];
    await new Promise((resolve) => {
      thief.close(resolve);
      thief.closeAllConnections();
    });

    fs.appendFileSync(task.files.stdout, lines(10, 5));
    await place.run();
    await place.mirrored(job, 'stdout');
    await pane.getByText(/^14 /).waitFor();
    const target = `http://127.0.0.1:${port}/api/find?text=a`;
    const statusWith = async (headers: Record<string, string>) => (await fetch(target, { headers })).status;
    expect(await statusWith({})).toBe(401);
    for (const secret of [...shown, ...stored].filter((text) => text !== '')) {
      expect(await statusWith({ authorization: secret }), secret).toBe(401);
      expect(await statusWith({ authorization: `Bearer ${secret}` }), secret).toBe(401);
      expect(await statusWith({ cookie: secret }), secret).toBe(401);
    }
    // It reloads as well.
    await view.page.reload();
    await view.page.locator('.connection.open').waitFor();
    expect(view.wrongs).toEqual([]);
  },
);
