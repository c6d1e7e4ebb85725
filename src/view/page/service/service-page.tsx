/** The service behind the agent, and the agent: facts, and the work of the last two hours as charts. */
import { useEffect } from 'preact/hooks';
import type { AgentState, Figure, ServiceState } from '../../contract/events.ts';
import { live } from '../live.ts';
import { SCROLLED_BY_KEYS } from '../parts/hooks.ts';
import { Plot } from '../parts/plot.tsx';
import { Fact, Failure, Outside } from '../parts/words.tsx';
import { numberText } from '../text/plotted.ts';
import { ago, bytes, counted, grouped } from '../text/units.ts';
import { Agents } from './agents.tsx';

/** What calls are for, by the name of the operation. */
const CALLS: Readonly<Record<string, string>> = {
  DownloadPartsOfJobFilesFromCluster: 'growth of live files',
  DownloadFileFromCluster: 'downloads',
  ListChangedFilesForJob: 'lists of files',
  GetCurrentInfoForJob: 'states of jobs',
  ListJobsForCurrentUser: 'lists of jobs',
  GetFileTransferMethod: 'transfer keys',
  EndFileTransfer: 'ended transfers',
};

export function ServicePage() {
  useEffect(() => live.subscribe({ service: '1' }), []);
  const service = live.service.value;
  const fleet = live.fleet.value;
  const now = live.now.value;
  return (
    <main class="service-page">
      <div class="page-head">
        <h1>Service</h1>
      </div>
      <section class="scrolls" aria-label="Facts" {...SCROLLED_BY_KEYS}>
        {fleet !== undefined && <Agents fleet={fleet} now={now} />}
        {service !== undefined && <Facts service={service} agent={live.agent.value} now={now} />}
        <Charts figures={live.figures.value} />
      </section>
    </main>
  );
}

function Charts({ figures }: { figures: readonly Figure[] | null | undefined }) {
  if (figures === undefined) return null;
  if (figures === null)
    return (
      <p class="notice">
        <span>
          The charts are of a view within the agent: set <code>view.listen</code>, and restart the agent.
        </span>
      </p>
    );
  // One point alone has no axis of time.
  if (figures.length < 2) return <p class="empty">The charts begin after fifteen seconds.</p>;
  const aMinute = (value: number) => `${numberText(Math.round(value * 10) / 10)}/min`;
  const perSecond = (value: number) => `${bytes(Math.round(value))}/s`;
  const inWords = ({ calls }: Figure) =>
    Object.fromEntries(Object.entries(calls).map(([name, rate]) => [CALLS[name] ?? name, rate]));
  return (
    <div class="cards">
      <Chart
        title="Bytes mirrored"
        curves={figures.map((figure) => ({ mirrored: figure.bytes }))}
        figures={figures}
        text={perSecond}
      />
      <Chart title="Calls" curves={figures.map(inWords)} figures={figures} text={aMinute} />
      <Chart title="Failures" curves={figures.map(({ failures }) => failures)} figures={figures} text={aMinute} />
    </div>
  );
}

interface ChartProps {
  readonly title: string;
  readonly figures: readonly Figure[];
  /** Of each figure: its values by the name of the curve. */
  readonly curves: readonly Readonly<Record<string, number>>[];
  readonly text: (value: number) => string;
}

function Chart({ title, figures, curves, text }: ChartProps) {
  const names = [...new Set(curves.flatMap((curve) => Object.keys(curve)))].sort();
  const columns = [figures.map(({ at }) => at / 1000), ...names.map((name) => curves.map((curve) => curve[name] ?? 0))];
  return (
    <section class="card">
      <h2>{title}</h2>
      {names.length === 0 ? (
        <p class="fine">None so far.</p>
      ) : (
        <Plot label={title} names={['time', ...names]} columns={columns} overTime={text} />
      )}
    </section>
  );
}

interface FactsProps {
  readonly service: ServiceState;
  readonly agent: AgentState | undefined;
  readonly now: number;
}

function Facts({ service, agent, now }: FactsProps) {
  const { jobService } = service;
  const watchMine = agent?.watchMine;
  return (
    <div class="cards">
      <section class="card">
        <h2>Connection</h2>
        <dl class="facts">
          <Fact word="address">
            <Outside text={service.address} />
          </Fact>
          <Fact word="protocol">{service.protocol.toUpperCase()}</Fact>
          <Fact word="limits">
            {counted(service.concurrency, 'call')} at a time,{' '}
            {service.requestsPerMinute === null
              ? 'paced by response times'
              : `${grouped(service.requestsPerMinute)} a minute`}
          </Fact>
          <Fact word="agent">{agent?.running === true ? `runs (process ${agent.pid})` : 'does not run'}</Fact>
        </dl>
      </section>
      <section class="card">
        <h2>Jobs</h2>
        <dl class="facts">
          {jobService === null && <Fact word="job service">none: tasks are found by their files</Fact>}
          {jobService !== null && (
            <Fact word="last asked">
              {jobService.requestedAt === null ? 'not yet' : ago(jobService.requestedAt, now)}
            </Fact>
          )}
          {jobService?.listed != null && <Fact word="reported">{counted(jobService.listed, 'job')}</Fact>}
          {watchMine != null && (
            <Fact word="by watch --mine">
              {grouped(watchMine.following)} followed, {grouped(watchMine.waiting)} waiting
            </Fact>
          )}
          {jobService !== null && jobService.failures > 0 && (
            <Fact word="failed in a row">{counted(jobService.failures, 'request')}</Fact>
          )}
        </dl>
        {jobService?.error != null && <Failure error={jobService.error} />}
      </section>
    </div>
  );
}
