/** The service behind the agent, and the agent: as figures over the last hours. */
import { useEffect } from 'preact/hooks';
import type { AgentState, Disk, Figure, ServiceState } from '../../contract/events.ts';
import { useLive } from '../live.ts';
import { ScrollKeys, Shares } from '../parts/bar.tsx';
import { Plot } from '../parts/plot.tsx';
import { Fact, Failure, Outside } from '../parts/words.tsx';
import { ago, bytes, counted, duration, grouped } from '../text/units.ts';
import { Agents } from './agents.tsx';
import { type Curves, callCurves, failureCurves, rateCurves } from './curves.ts';

export function ServicePage() {
  const live = useLive();
  useEffect(() => live.subscribe({ service: '1' }), [live]);
  const service = live.service.value;
  const figures = live.figures.value;
  const fleet = live.fleet.value;
  const now = live.now.value;
  return (
    <main class="service-page">
      <div class="page-head">
        <h1>Service</h1>
        {figures[0] !== undefined && <span class="fine">the last {duration(now - figures[0].at)}</span>}
      </div>
      <section class="scrolls" aria-label="Figures">
        <ScrollKeys label="figures" />
        {fleet !== undefined && <Agents fleet={fleet} now={now} />}
        {service !== undefined && <Facts service={service} agent={live.agent.value} figures={figures} now={now} />}
        <Figures figures={figures} isWithinAgent={service?.withinAgent ?? true} />
      </section>
    </main>
  );
}

function Figures({ figures, isWithinAgent }: { figures: readonly Figure[]; isWithinAgent: boolean }) {
  if (figures.length < 2)
    return <p class="empty">The first curves appear after twenty seconds: the view takes figures every ten.</p>;
  return (
    <div class="cards plots">
      <Card
        title="Bytes mirrored a second"
        curves={rateCurves(figures)}
        format={(value) => `${bytes(Math.round(value))}/s`}
      />
      {isWithinAgent ? (
        <>
          <Card title="Calls a minute" curves={callCurves(figures)} />
          <Card title="Failures a minute" curves={failureCurves(figures)} />
        </>
      ) : (
        <p class="notice">
          <span>
            Calls and failures are counted where the view runs within the agent: set <code>view.listen</code>, and
            restart the agent.
          </span>
        </p>
      )}
    </div>
  );
}

function Card({ title, curves, format }: { title: string; curves: Curves; format?: (value: number) => string }) {
  const isEmpty = curves.names.length < 2;
  return (
    <section class="card">
      <h2>{title}</h2>
      {isEmpty ? (
        <p class="fine">None so far.</p>
      ) : (
        <Plot label={title} {...curves} isTime fromZero height={180} {...(format === undefined ? {} : { format })} />
      )}
    </section>
  );
}

interface FactsProps {
  readonly service: ServiceState;
  readonly agent: AgentState | undefined;
  readonly figures: readonly Figure[];
  readonly now: number;
}

const signInsIn = (figures: readonly Figure[]) => figures.reduce((sum, { agent }) => sum + (agent?.signIns ?? 0), 0);

function Facts({ service, agent, figures, now }: FactsProps) {
  const latest = figures.at(-1);
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
          {latest?.agent != null && <Fact word="calls in the queue">{grouped(latest.agent.waiting)}</Fact>}
          {latest?.agent != null && <Fact word="sign-ins">{grouped(signInsIn(figures))}</Fact>}
          <Fact word="agent">{agent?.running === true ? `runs (pid ${agent.pid})` : 'does not run'}</Fact>
          {agent?.watchMine != null && (
            <Fact word="jobs of the user">
              {grouped(agent.watchMine.following)} followed, {grouped(agent.watchMine.waiting)} waiting
            </Fact>
          )}
        </dl>
      </section>
      <JobService service={service} now={now} />
      <section class="card">
        <h2>Detected server</h2>
        {service.learned.length === 0 && <p class="fine">Nothing yet: the agent detects it by the first responses.</p>}
        <dl class="facts">
          {service.learned.map(({ name, value }) => (
            <Fact key={name} word={<Outside text={name} />}>
              <Outside text={value} />
            </Fact>
          ))}
        </dl>
      </section>
      <section class="card">
        <h2>Disks</h2>
        {service.disks.map((disk) => (
          <FreeDisk key={disk.name} disk={disk} />
        ))}
      </section>
    </div>
  );
}

function JobService({ service: { jobService }, now }: { service: ServiceState; now: number }) {
  if (jobService === null) return null;
  const { requestedAt, listed, failures, error } = jobService;
  return (
    <section class="card">
      <h2>Job service</h2>
      <dl class="facts">
        <Fact word="last request">{requestedAt === null ? 'none yet' : ago(requestedAt, now)}</Fact>
        {listed !== null && <Fact word="jobs reported">{grouped(listed)}</Fact>}
        {failures > 0 && <Fact word="failed requests">{grouped(failures)}</Fact>}
      </dl>
      {error !== null && <Failure error={error} />}
    </section>
  );
}

function FreeDisk({ disk: { name, directory, freeBytes, totalBytes } }: { disk: Disk }) {
  const words = `${bytes(totalBytes - freeBytes)} of ${bytes(totalBytes)} used, ${bytes(freeBytes)} free`;
  const shares = [
    { kind: 'done', count: totalBytes - freeBytes },
    { kind: 'left', count: freeBytes },
  ];
  return (
    <div class="disk">
      <span>
        {name}: {words}
      </span>
      <Shares shares={shares} words={`${name}: ${words}`} />
      <span class="fine">
        <Outside text={directory} />
      </span>
    </div>
  );
}
