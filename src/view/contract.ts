export type { ContentQuery } from './contract/contents.ts';
export type { JobSummary, ResultCounts } from './contract/jobs.ts';
