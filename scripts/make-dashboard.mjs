// Makes docs/grafana-dashboard.json: `node scripts/make-dashboard.mjs`. A dashboard written by hand is mostly
// coordinates; here it is a list of panels.
import { writeFileSync } from 'node:fs';

const of = (name, more = '') => `jobtail_${name}{instance=~"$instance"${more}}`;
const rate = (name, by) => `sum by (${by}) (rate(${of(name)}[$__rate_interval]))`;
const p95 = `histogram_quantile(0.95, ${rate('call_duration_seconds_bucket', 'le, operation')})`;
const signIns = `sum by (outcome) (increase(${of('sign_ins_total')}[$__rate_interval]))`;
/** A title, then a query, its unit and its legend; and a second query with its legend. */
const STATS = [
  ['Jobs watched', `sum(${of('jobs', ', state="watched"')})`],
  ['Failing', `sum(${of('jobs_failing')})`],
  ['Last growth', `min(${of('growth_age_seconds')})`, 's'],
  ['Oldest poll', `max(${of('oldest_poll_age_seconds')})`, 's'],
  ['Version', of('build_info'), undefined, '{{version}}, node {{node}}'],
];
const [former, refused] = ['former_generations', 'refused_entries'].map((name) => `sum(${of(name)})`);
const own = (name) => of(name).replace('jobtail_', '');
const GRAPHS = [
  ['Live bytes mirrored', rate('mirrored_bytes_total', 'instance'), 'Bps', '{{instance}}'],
  ['Result bytes fetched', rate('results_fetched_bytes_total', 'instance'), 'Bps', '{{instance}}'],
  ['Calls by outcome', rate('calls_total', 'operation, outcome'), 'reqps', '{{operation}} {{outcome}}'],
  ['Calls, 95th percentile', p95, 's', '{{operation}}'],
  ['Calls that wait', of('calls_waiting'), undefined, '{{instance}}'],
  ['Sign-ins', signIns, undefined, '{{outcome}}'],
  ['Results by state', `sum by (state) (${of('results')})`, undefined, '{{state}}'],
  ['Generations and refused entries', former, undefined, 'generations', refused, 'refused'],
  ['Free disk', of('disk_free_bytes'), 'bytes', '{{instance}} {{directory}}'],
  ['Event loop, 99th percentile', own('nodejs_eventloop_lag_p99_seconds'), 's', '{{instance}}'],
  ['Memory', own('process_resident_memory_bytes'), 'bytes', '{{instance}}'],
  ['Log lines lost', of('log_lines_lost'), undefined, '{{instance}}'],
];

const datasource = { type: 'prometheus', uid: '$datasource' };
const targetOf = (expr, legendFormat, refId) => ({ datasource, expr, legendFormat: legendFormat ?? '', refId });
const panels = [...STATS, ...GRAPHS].map(([title, expr, unit, legend, second, secondLegend], index) => {
  // The graphs are below a row of numbers, three in a row.
  const graph = index - STATS.length;
  const isStat = graph < 0;
  const gridPos = isStat
    ? { x: index * 4, y: 0, w: 4, h: 4 }
    : { x: (graph % 3) * 8, y: 4 + Math.floor(graph / 3) * 8, w: 8, h: 8 };
  const targets = [targetOf(expr, legend, 'A'), ...(second === undefined ? [] : [targetOf(second, secondLegend, 'B')])];
  return {
    ...{ id: index + 1, type: isStat ? 'stat' : 'timeseries', title, datasource, gridPos },
    fieldConfig: { defaults: unit ? { unit } : {}, overrides: [] },
    options: title === 'Version' ? { textMode: 'name' } : {},
    targets,
  };
});

const dashboard = {
  title: 'jobtail',
  uid: 'jobtail',
  schemaVersion: 38,
  editable: true,
  refresh: '30s',
  time: { from: 'now-6h', to: 'now' },
  templating: {
    list: [
      { name: 'datasource', type: 'datasource', query: 'prometheus' },
      {
        name: 'instance',
        type: 'query',
        datasource,
        query: 'label_values(jobtail_build_info, instance)',
        includeAll: true,
        multi: true,
        current: { text: 'All', value: '$__all' },
        refresh: 2,
      },
    ],
  },
  panels,
};
writeFileSync(new URL('../docs/grafana-dashboard.json', import.meta.url), `${JSON.stringify(dashboard, null, 2)}\n`);
