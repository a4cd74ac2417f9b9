"""Gates that ask a Job: it is made from a CronJob, watched, judged by how it ends, and stopped or deleted in time."""
