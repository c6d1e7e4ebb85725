/** The agents of the fleet, and how much each of them has to do. */
import type { FleetAgent, FleetState } from '../../contract/events.ts';
import { Outside } from '../parts/words.tsx';
import { ago, counted, duration, grouped } from '../text/units.ts';

export function Agents({ fleet, now }: { fleet: FleetState; now: number }) {
  const { name, agents, waitingJobs } = fleet;
  return (
    <section class="card agents" aria-label="Agents of the fleet">
      <h2>Agents of the fleet</h2>
      {waitingJobs > 0 && <p class="notice">{counted(waitingJobs, 'job')} without an agent: none has room.</p>}
      <table>
        <thead>
          <tr>
            {['Agent', 'State', 'Jobs', 'Last heartbeat', 'Lag', 'Calls a minute', 'Host', 'Version', 'View'].map(
              (head) => (
                <th key={head} scope="col">
                  {head}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {agents.map((agent) => (
            <Agent key={agent.name} agent={agent} isHere={agent.name === name} now={now} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Agent({ agent, isHere, now }: { agent: FleetAgent; isHere: boolean; now: number }) {
  const { name, state, jobs, maxJobs, seenAt, lagMs, callsLastMinute, host, version, view } = agent;
  return (
    <tr>
      <th scope="row">
        <Outside text={name} /> {isHere && <span class="badge">this view</span>}
      </th>
      <td>
        <span class={`state ${state === 'gone' ? 'bad' : state === 'alive' ? 'active' : 'plain'}`}>{state}</span>{' '}
        <Problems agent={agent} />
      </td>
      <td>
        {grouped(jobs)} of {grouped(maxJobs)}
      </td>
      <td>{ago(seenAt, now)}</td>
      <td>{lagMs === null || state === 'gone' ? '' : duration(lagMs)}</td>
      <td>{state === 'gone' ? '' : grouped(callsLastMinute)}</td>
      <td>
        <Outside text={host} />
      </td>
      <td>
        <Outside text={version} />
      </td>
      <td>{view !== null && <Outside text={view} />}</td>
    </tr>
  );
}

function Problems({ agent: { lacks, notFollowed } }: { agent: FleetAgent }) {
  return (
    <>
      {lacks !== null && (
        <span class="bad">
          not ready: <Outside text={lacks} />
        </span>
      )}
      {notFollowed > 0 && <span class="bad"> does not follow {counted(notFollowed, 'job')} of its own</span>}
    </>
  );
}
