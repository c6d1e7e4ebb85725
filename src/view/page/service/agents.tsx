/** The agents of the fleet, and how much each of them has to do. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { FleetAgent, FleetState } from '../../contract/events.ts';
import { type Columns, column, type Sort, sorted } from '../parts/sort.ts';
import { Table } from '../parts/table.tsx';
import { Outside } from '../parts/words.tsx';
import { ago, counted, duration, grouped } from '../text/units.ts';

export const COLUMNS = {
  name: column('Agent', ({ name }) => name, false),
  state: column('State', ({ state }) => state, false),
  jobs: column('Jobs', ({ jobs }) => jobs),
  seen: column('Last heartbeat', ({ seenAt }) => seenAt),
  lag: column('Poll age', ({ pollAgeMs }) => pollAgeMs),
  calls: column('Calls a minute', ({ callsLastMinute }) => callsLastMinute),
  host: column('Host', ({ host }) => host, false),
  version: column('Version', ({ version }) => version, false),
  view: column('View', ({ view }) => view, false),
} satisfies Columns<string, FleetAgent>;

const order = signal<Sort<keyof typeof COLUMNS>>({ by: 'name', isDown: false });

export function Agents({ fleet: { name, agents, waitingJobs }, now }: { fleet: FleetState; now: number }) {
  const { by, isDown } = order.value;
  const rows = sorted(agents, COLUMNS[by], { isDown, now, tie: (a, b) => (a.name < b.name ? -1 : 1) });
  return (
    <section class="card agents" aria-label="Agents of the fleet">
      <h2>Agents of the fleet</h2>
      {waitingJobs > 0 && <p class="notice">{counted(waitingJobs, 'job')} without an agent: none has room.</p>}
      <Table
        kind="agent"
        label="Agents"
        columns={COLUMNS}
        sort={order}
        rows={rows}
        keyOf={(agent) => agent.name}
        cells={(agent) => cellsOf(agent, agent.name === name, now)}
      />
    </section>
  );
}

function cellsOf(agent: FleetAgent, isHere: boolean, now: number): Record<keyof typeof COLUMNS, ComponentChildren> {
  const { name, state, jobs, maxJobs, seenAt, pollAgeMs, callsLastMinute, host, version, view, lacks, notFollowed } =
    agent;
  const isGone = state === 'gone';
  return {
    name: (
      <>
        <Outside text={name} /> {isHere && <span class="badge">this view</span>}
      </>
    ),
    state: (
      <>
        <span class={`state ${isGone ? 'bad' : state === 'alive' ? 'active' : 'plain'}`}>{state}</span>{' '}
        {lacks !== null && (
          <span class="bad">
            not ready: <Outside text={lacks} />
          </span>
        )}
        {notFollowed > 0 && <span class="bad"> does not follow {counted(notFollowed, 'job')} of its own</span>}
      </>
    ),
    jobs: `${grouped(jobs)} of ${grouped(maxJobs)}`,
    seen: ago(seenAt, now),
    lag: pollAgeMs === null || isGone ? '' : duration(pollAgeMs),
    calls: isGone ? '' : grouped(callsLastMinute),
    host: <Outside text={host} />,
    version: <Outside text={version} />,
    view: view !== null && <Outside text={view} />,
  };
}
