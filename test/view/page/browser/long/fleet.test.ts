/** The view of one agent of a fleet: jobs whoever owns them, the bytes of others, and the agents with their load. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../../../../support/e2e-until.ts';
import { Fleet } from '../../../../support/fleet.ts';
import type { FleetAgent } from '../../../../support/fleet-agent.ts';
import { needs } from '../../../../support/needs.ts';
import { startBrowser, ViewPage, viewSection } from '../../../../support/view-browser.ts';
import { findings } from '../../../../support/view-jobs.ts';

const HOSTILE = '<img src=x onerror=window.hacked=1>\u202e';

type Config = { view?: unknown; mirror: { directory: string } };

function configure(agent: FleetAgent, change: (config: Config) => Config): void {
  const config = JSON.parse(fs.readFileSync(agent.configFile, 'utf8')) as Config;
  fs.writeFileSync(agent.configFile, JSON.stringify(change(config)));
}

async function linkOf(agent: FleetAgent): Promise<string> {
  return await until('the link of the view', async () => {
    const { stdout, code } = await agent.command('view', '--no-open');
    return code === 0 && stdout.startsWith('http://') ? stdout.trim() : undefined;
  });
}

describe('the view of a fleet', needs('chromium', 'postgres'), () => {
  it('shows every job, its bytes from the shared mirror, and the agents', async (context) => {
    const fleet = await Fleet.make(context, { jobs: 6, agents: ['anna', 'ben'] });
    const { view: section } = await viewSection();
    const publicUrl = 'http://jobs.example.org/anna/';
    configure(fleet.agent('anna'), (config) => ({ ...config, view: { ...section, publicUrl } }));
    await fleet.runSpread();
    await fleet.untilEqual();
    const view = await ViewPage.open(
      await startBrowser(context),
      (await linkOf(fleet.agent('anna'))).replace(publicUrl, `http://${section.listen}/`),
    );
    const rows = view.page.locator('.job-row');
    await until('all jobs', async () => (await rows.count()) === 6);
    const shownOwners = async () => {
      const ids = await rows.locator('.job-link strong').allTextContents();
      return new Map((await rows.locator('.job-owner').allTextContents()).map((owner, row) => [ids[row] ?? '', owner]));
    };
    // A busy agent hands some of its jobs off.
    const isShown = async () => {
      const shown = await shownOwners();
      const owners = await fleet.owners();
      return owners.size === 6 && [...owners].every(([jobId, owner]) => shown.get(jobId) === owner);
    };
    await until('the owner of each job', isShown);
    // The words of the filter find the jobs of one agent; the heads sort by it.
    await view.page.getByRole('searchbox').fill('ben');
    await until('the jobs of ben', async () => new Set((await shownOwners()).values()).size === 1);
    await view.page.getByRole('searchbox').fill('');
    await view.page.getByRole('button', { name: 'Agent', exact: true }).click();
    await until('the order of agents', async () => {
      const shown = [...(await shownOwners()).values()];
      return shown.length === 6 && shown.join() === shown.toSorted().join();
    });
    expect(await findings(view)).toEqual([]);
    // Bytes of another agent, as they grow.
    const [jobOfBen = ''] = [...(await fleet.owners())].find(([, owner]) => owner === 'ben') ?? [];
    const job = fleet.jobs.find(({ jobId }) => jobId === jobOfBen);
    const file = fleet.files.find(({ name }) => name.startsWith(`${jobOfBen}/`) && name.endsWith('stdout'));
    const taskId = job?.tasks[0]?.taskId ?? '';
    await view.show(`#/job/${jobOfBen}/live?file=${taskId}/stdout`);
    const pane = await view.pane(`stdout of task ${taskId}`);
    file?.append(50);
    await until('the lines that came', async () => (await view.shownLines(pane)).some(({ number }) => number === '53'));
    // The agents.
    await view.show('#/service');
    const agents = view.page.getByRole('region', { name: 'Agents of the fleet' });
    await agents.getByText('http://jobs.example.org/anna/').waitFor();
    expect(await agents.locator('tbody tr').allTextContents()).toEqual([
      expect.stringMatching(/^anna this viewalive \d of/),
      expect.stringMatching(/^ben ?alive \d of/),
    ]);
    expect(await findings(view)).toEqual([]);
    // Every row of the database is hostile.
    await fleet.query('UPDATE jobtail.agents SET about = $1 WHERE name = $2', [
      JSON.stringify({ host: HOSTILE, pid: 1, version: HOSTILE, view: `https://${HOSTILE}` }),
      'ben',
    ]);
    await agents.getByText('<img src=x onerror=window.hacked=1>\\u{202E}').first().waitFor();
    expect(await agents.locator('a').count()).toBe(0);
    await fleet.query(`UPDATE jobtail.agents SET about = $1 WHERE name = 'ben'`, [
      JSON.stringify({ host: 'h', pid: 1, version: '1', view: 'javascript:window.hacked=1' }),
    ]);
    await until(
      'an address that is none to be left out',
      async () => (await agents.locator('tbody tr').nth(1).locator('td').last().textContent()) === '',
    );
    expect(await view.page.evaluate('typeof window.hacked')).toBe('undefined');
    // Without the database, what is known stays, and is marked.
    for (const { relay } of fleet.agents) relay.cut();
    await view.page.getByText('fleet not reachable').waitFor();
    await view.show('#/');
    expect(await rows.count()).toBe(6);
    for (const { relay } of fleet.agents) relay.open();
    await view.page.getByText('live', { exact: true }).waitFor();
    expect(view.wrongs).toEqual([]);
  });

  it('says where the bytes are that its machine does not have', async (context) => {
    const sections = { fleet: { separateMirrors: true } };
    const fleet = await Fleet.make(context, { jobs: 2, agents: ['anna', 'ben'], sections });
    const [anna, ben] = [fleet.agent('anna'), fleet.agent('ben')];
    const view = await viewSection();
    configure(ben, (config) => ({
      ...config,
      ...view,
      mirror: { directory: path.join(fleet.place.directory, 'own') },
    }));
    fleet.grow();
    await fleet.run();
    await fleet.untilSpread();
    const jobOfAnna = [...(await fleet.owners())].find(([, owner]) => owner === 'anna')?.[0] ?? '';
    await fleet.untilEqual(fleet.files.filter(({ name }) => name.startsWith(`${jobOfAnna}/`)));
    const page = await ViewPage.open(await startBrowser(context), await linkOf(ben));
    const task = fleet.jobs.find(({ jobId }) => jobId === jobOfAnna)?.tasks[0]?.taskId ?? '';
    await page.show(`#/job/${jobOfAnna}/live?file=${task}/stdout`);
    await page.page.getByText(`The mirrors of job ${jobOfAnna} are at the agent anna (host `).waitFor();
    await page.page.getByText('Run agent view there.').waitFor();
    expect(await page.page.locator('.pane, .failure').count()).toBe(0);
    // Nor does a request get bytes that another life of this machine left.
    const left = path.join(fleet.place.directory, 'own', jobOfAnna, task, 'stdout.log');
    fs.mkdirSync(path.dirname(left), { recursive: true });
    fs.writeFileSync(left, 'stale\n');
    const status = await page.page.evaluate(
      `fetch('api/lines?job=${jobOfAnna}&task=${task}&file=stdout', {
        headers: { authorization: 'Bearer ' + localStorage.getItem('jobtail-session ' + location.pathname) },
      }).then(async (it) => [it.status, (await it.json()).message])`,
    );
    expect(status).toEqual([404, `there is no mirror of job ${jobOfAnna} here: the agent anna has them`]);
    expect(await findings(page)).toEqual([]);
    expect(anna.isRunning && ben.isRunning).toBe(true);
    expect(page.wrongs).toEqual([]);
  });
});
