/** The service behind the agent, and the agent. */
import { useEffect } from 'preact/hooks';
import type { AgentState, ServiceState } from '../../contract/events.ts';
import { useLive } from '../live.ts';
import { ScrollKeys } from '../parts/bar.tsx';
import { Fact, Failure, Outside } from '../parts/words.tsx';
import { ago, counted, grouped } from '../text/units.ts';
import { Agents } from './agents.tsx';

export function ServicePage() {
  const live = useLive();
  useEffect(() => live.subscribe({ service: '1' }), [live]);
  const service = live.service.value;
  const fleet = live.fleet.value;
  const now = live.now.value;
  return (
    <main class="service-page">
      <div class="page-head">
        <h1>Service</h1>
      </div>
      <section class="scrolls" aria-label="Facts">
        <ScrollKeys label="facts" />
        {fleet !== undefined && <Agents fleet={fleet} now={now} />}
        {service !== undefined && <Facts service={service} agent={live.agent.value} now={now} />}
      </section>
    </main>
  );
}

interface FactsProps {
  readonly service: ServiceState;
  readonly agent: AgentState | undefined;
  readonly now: number;
}

function Facts({ service, agent, now }: FactsProps) {
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
