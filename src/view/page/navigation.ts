/** What the page shows of itself outside of itself, its title and its icon, and the steps from job to job. */
import { signal } from '@preact/signals';
import { printable } from '../../printable.ts';
import type { JobSummary } from '../contract/events.ts';
import { type Group, groupOf } from './jobs/list.ts';
import { live } from './live.ts';
import { hashOf, type Route, routeOf } from './route.ts';

/** The jobs of the list in their order, once it was shown. */
let jobOrder: readonly string[] = [];

export function noteJobOrder(jobs: readonly JobSummary[]): void {
  jobOrder = jobs.map(({ jobId }) => jobId);
}

/** The shown pictures among the results of a job, in their order. */
let pictures: readonly string[] = [];

export function notePictures(names: readonly string[]): void {
  pictures = names;
}

/** Whether the filter of the list shall have the focus, once the list is shown. */
export const isFilterWanted = signal(false);

/** Colours of the icon by what a person does about a job; others have the usual one. */
const COLOURS: Partial<Record<Group, string>> = {
  failed: '#b3261e',
  error: '#b3261e',
  stalled: '#b3261e',
  finished: '#64748b',
};
const USUAL = '#0f766e';

/** `failed · 504 cfd wing · jobtail`, also in the icon of the tab. */
export function showInTab(route: Route): void {
  const job = 'jobId' in route ? live.details.value.get(route.jobId) : undefined;
  document.title = titleOf(route, job);
  const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  const colour = (job && COLOURS[groupOf(job)]) ?? USUAL;
  const image = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${colour}"/><path d="M8 9.5h16M8 15h11M8 20.5h7" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/></svg>`;
  if (icon !== null) icon.href = `data:image/svg+xml,${encodeURIComponent(image)}`;
}

function titleOf(route: Route, job: JobSummary | undefined): string {
  if (!('jobId' in route)) return route.page === 'jobs' ? 'jobtail' : `${route.page} · jobtail`;
  if (job === undefined) return `${route.jobId} · jobtail`;
  return `${printable(job.jobState ?? job.state)} · ${job.jobId} ${printable(job.name ?? '')} · jobtail`;
}

/** Shows the list of jobs, with the focus in its filter. */
export function showJobs(): void {
  location.hash = hashOf({ page: 'jobs' });
  isFilterWanted.value = true;
}

/** Moves the focus to the next link of a list. The focus counts first: it moves before the list is drawn again. */
function step(selector: string, isBack: boolean): HTMLAnchorElement | undefined {
  const links = [...document.querySelectorAll<HTMLAnchorElement>(selector)];
  const focused = links.indexOf(document.activeElement as HTMLAnchorElement);
  const current = focused < 0 ? links.findIndex((link) => link.ariaCurrent === 'true') : focused;
  const next = links[current < 0 ? 0 : current + (isBack ? -1 : 1)];
  next?.focus();
  return next;
}

export const stepJobRows = (isBack: boolean) => step('.job-link', isBack);
export const stepFiles = (isBack: boolean) => step('.file-link', isBack)?.click();

export function stepJobs(isBack: boolean): void {
  const route = routeOf(location.hash);
  if (!('jobId' in route)) return;
  const next = jobOrder[jobOrder.indexOf(route.jobId) + (isBack ? -1 : 1)];
  location.hash = next === undefined ? hashOf({ page: 'jobs' }) : hashOf({ page: 'live', jobId: next, files: [] });
}

/** False if no picture is open, or it is the last one. */
export function stepPictures(isBack: boolean): boolean {
  const route = routeOf(location.hash);
  const at = route.page === 'results' ? pictures.indexOf(route.name ?? '') : -1;
  const name = at < 0 ? undefined : pictures[at + (isBack ? -1 : 1)];
  if (route.page === 'results' && name !== undefined) location.hash = hashOf({ ...route, name });
  return name !== undefined;
}
