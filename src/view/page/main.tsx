/** The page: what it shows is behind `#` in its address, what it shows it of comes from `api/` beside it. */
import { effect, signal } from '@preact/signals';
import { render } from 'preact';
import { sendBy } from './api.ts';
import { CONDITION_WORDS } from './condition.ts';
import { JobPage } from './job/job-page.tsx';
import { LiveFiles } from './job/live-files.tsx';
import { JobsPage } from './jobs/jobs-page.tsx';
import { SearchPage } from './jobs/search-page.tsx';
import { live } from './live.ts';
import { titleOf } from './navigation.ts';
import { KeyList } from './pane/key-list.tsx';
import { takeAllKeys } from './pane/keys.ts';
import { Banner } from './parts/banner.tsx';
import { ResultsPage } from './results/results-page.tsx';
import { hashOf, type Route, routeOf } from './route.ts';
import { ServicePage } from './service/service-page.tsx';
import { request } from './session.ts';

const route = signal(routeOf(location.hash));

function App() {
  return (
    <>
      <Top page={route.value.page} />
      <Banner />
      <Shown route={route.value} />
    </>
  );
}

function Shown({ route }: { route: Route }) {
  // What was read stays; the banner shows why it is not current.
  if (live.condition.value.kind === 'refused' && live.agent.value === undefined) return null;
  switch (route.page) {
    case 'jobs':
      return <JobsPage />;
    case 'service':
      return <ServicePage />;
    case 'search':
      return <SearchPage key={hashOf(route)} route={route} />;
    case 'live':
      return (
        <JobPage jobId={route.jobId} tab="live">
          <LiveFiles key={route.jobId} route={route} />
        </JobPage>
      );
    case 'results':
      return (
        <JobPage jobId={route.jobId} tab="results">
          <ResultsPage key={route.jobId} route={route} />
        </JobPage>
      );
  }
}

function Top({ page }: { page: Route['page'] }) {
  const connection = live.connection.value;
  const tabs = [
    ['Jobs', { page: 'jobs' }, page !== 'service' && page !== 'search'],
    ['Search', { page: 'search', text: '', regex: false }, page === 'search'],
    ['Service', { page: 'service' }, page === 'service'],
  ] as const;
  return (
    <header class="top">
      <a class="brand" href={hashOf({ page: 'jobs' })} aria-label="jobtail: all jobs">
        <span class="brand-sign" aria-hidden="true" />
        <span class="brand-word">jobtail</span>
      </a>
      <nav aria-label="Pages">
        {tabs.map(([word, route, isCurrent]) => (
          <a key={word} class="tab" href={hashOf(route)} aria-current={isCurrent ? 'page' : undefined}>
            {word}
          </a>
        ))}
      </nav>
      <span class={`fine connection ${connection}`} role="status">
        <span class="pulse" />
        {CONDITION_WORDS[live.condition.value.kind]}
      </span>
      <KeyList />
    </header>
  );
}

sendBy(request);
live.start();
addEventListener('hashchange', () => {
  route.value = routeOf(location.hash);
});
effect(() => {
  document.title = titleOf(route.value);
});
takeAllKeys();
render(<App />, document.getElementById('page') as HTMLElement);
