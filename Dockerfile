# One image for every process: `python -m toolbench.running up` runs them all, `… worker` runs one more worker.
FROM python:3.11-slim-bookworm

RUN apt-get update \
 && apt-get install -y --no-install-recommends libgomp1 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 10001 toolbench

WORKDIR /app
COPY requirements/run.txt requirements/run.txt
RUN pip install --no-cache-dir --no-deps --require-hashes -r requirements/run.txt

COPY manage.py ./
COPY toolbench toolbench
COPY templates templates
COPY static static
COPY docs/glossary.md docs/glossary.md
RUN python -m toolbench.cli local-model install

ENV TOOLBENCH_VAR=/data HOST=0.0.0.0 PYTHONUNBUFFERED=1
# As in toolbench/running/processes.py.
ENV MALLOC_MMAP_THRESHOLD_=1048576 MALLOC_TRIM_THRESHOLD_=1048576
RUN install -d -o toolbench -g toolbench -m 0700 /data
USER toolbench
VOLUME /data
EXPOSE 8000 8001
STOPSIGNAL SIGTERM
CMD ["python", "-m", "toolbench.running", "up"]
