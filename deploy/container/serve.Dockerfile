# The server of docs/serve.md: docker build -f deploy/container/serve.Dockerfile .
# Start it with: docker run --read-only --tmpfs /tmp -p 127.0.0.1:8000:8000 IMAGE --allow-host localhost
# (a socket in /tmp starts the processes that plan)
ARG BASE=python:3.12-slim
FROM ${BASE} AS build
WORKDIR /src
COPY deploy/container/serve-requirements.txt deploy/
RUN python -m venv /opt/recommend \
 && /opt/recommend/bin/pip install --no-cache-dir --require-hashes -r deploy/serve-requirements.txt
COPY . .
RUN /opt/recommend/bin/pip install --no-cache-dir --no-index --no-deps --no-build-isolation .

FROM ${BASE}
COPY --from=build /opt/recommend /opt/recommend
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin recommend
USER 10001:10001
ENV PATH=/opt/recommend/bin:$PATH HOME=/tmp
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=3)"]
ENTRYPOINT ["recommend", "serve", "--host", "0.0.0.0"]
