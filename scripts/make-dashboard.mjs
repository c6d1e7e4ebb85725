// Makes docs/grafana-dashboard.json: `node scripts/make-dashboard.mjs`. A dashboard written by hand is mostly
// coordinates; here it is a list of panels.
import { writeFileSync } from 'node:fs';

const WHERE = 'instance=~"$instance"';
const rate = (name, by) => `sum by (${by}) (rate(${name}{${WHERE}}[$__rate_interval]))`;
const PANELS = [
  ['stat', 'Jobs watched', `sum(jobtail_jobs{${WHERE}, state="watched"})`],
  ['stat', 'Failing', `sum(jobtail_jobs_failing{${WHERE}})`],
  ['stat', 'Last growth', `min(jobtail_growth_age_seconds{${WHERE}})`, 's'],
  ['stat', 'Oldest poll', `max(jobtail_oldest_poll_age_seconds{${WHERE}})`, 's'],
  ['stat', 'Version', `jobtail_build_info{${WHERE}}`, undefined, '{{version}}, node {{node}}'],
  ['timeseries', 'Live bytes mirrored', rate('jobtail_mirrored_bytes_total', 'instance'), 'Bps', '{{instance}}'],
  [
    'timeseries',
    'Result bytes fetched',
    rate('jobtail_results_fetched_bytes_total', 'instance'),
    'Bps',
    '{{instance}}',
  ],
  [
    'timeseries',
    'Calls by outcome',
    rate('jobtail_calls_total', 'operation, outcome'),
    'reqps',
    '{{operation}} {{outcome}}',
  ],
  [
    'timeseries',
    'Calls, 95th percentile',
    `histogram_quantile(0.95, ${rate('jobtail_call_duration_seconds_bucket', 'le, operation')})`,
    's',
    '{{operation}}',
  ],
  ['timeseries', 'Calls that wait', `jobtail_calls_waiting{${WHERE}}`, undefined, '{{instance}}'],
  [
    'timeseries',
    'Sign-ins',
    `sum by (outcome) (increase(jobtail_sign_ins_total{${WHERE}}[$__rate_interval]))`,
    undefined,
    '{{outcome}}',
  ],
  ['timeseries', 'Results by state', `sum by (state) (jobtail_results{${WHERE}})`, undefined, '{{state}}'],
  [
    'timeseries',
    'Generations and refused entries',
    `sum(jobtail_former_generations{${WHERE}})`,
    undefined,
    'generations',
    `sum(jobtail_refused_entries{${WHERE}})`,
    'refused',
  ],
  ['timeseries', 'Free disk', `jobtail_disk_free_bytes{${WHERE}}`, 'bytes', '{{instance}} {{directory}}'],
  ['timeseries', 'Event loop, 99th percentile', `nodejs_eventloop_lag_p99_seconds{${WHERE}}`, 's', '{{instance}}'],
  ['timeseries', 'Memory', `process_resident_memory_bytes{${WHERE}}`, 'bytes', '{{instance}}'],
  ['timeseries', 'Log lines lost', `jobtail_log_lines_lost{${WHERE}}`, undefined, '{{instance}}'],
];

const datasource = { type: 'prometheus', uid: '$datasource' };
let at = { x: 0, y: 0 };
const panels = PANELS.map(([type, title, expr, unit, legendFormat, second, secondLegend], index) => {
  const [w, h] = type === 'stat' ? [4, 4] : [8, 8];
  if (at.x + w > 24) at = { x: 0, y: at.y + h };
  // The first graph starts below the row of numbers.
  if (type === 'timeseries' && PANELS[index - 1][0] === 'stat') at = { x: 0, y: 4 };
  const gridPos = { ...at, w, h };
  at = { x: at.x + w, y: at.y };
  const target = (text, legend, refId) => ({ datasource, expr: text, legendFormat: legend ?? '', refId });
  const targets = [target(expr, legendFormat, 'A')];
  if (second !== undefined) targets.push(target(second, secondLegend, 'B'));
  const options = title === 'Version' ? { textMode: 'name' } : {};
  return {
    id: index + 1,
    type,
    title,
    datasource,
    gridPos,
    fieldConfig: { defaults: unit ? { unit } : {}, overrides: [] },
    options,
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
